"""What the bot says itself, in the question's language. English stands in for a language that is not here."""

from __future__ import annotations

from typing import Final

_PHRASES: Final[dict[str, dict[str, str]]] = {
    "greeting": {
        "en": "Hello! Ask me anything about the documents I hold, and I answer with the sources.",
        "de": "Hallo! Frag mich etwas zu den Dokumenten, die ich habe; ich antworte mit den Quellen.",
        "fr": "Bonjour ! Posez-moi une question sur les documents que j'ai ; je réponds avec les sources.",
        "es": "¡Hola! Pregúntame sobre los documentos que tengo y respondo con las fuentes.",
        "it": "Ciao! Chiedimi qualcosa sui documenti che ho: rispondo con le fonti.",
        "pt": "Olá! Pergunte-me sobre os documentos que tenho; respondo com as fontes.",
        "ja": "こんにちは。手元の文書について質問してください。出典を添えて答えます。",
        "zh": "你好！请就我收录的文档提问，我会附上出处回答。",
        "ko": "안녕하세요! 제가 가진 문서에 대해 물어보시면 출처와 함께 답해 드립니다.",
    },
    "thanks": {
        "en": "You're welcome!",
        "de": "Gern geschehen!",
        "fr": "Avec plaisir !",
        "es": "¡De nada!",
        "it": "Prego!",
        "pt": "De nada!",
        "ja": "どういたしまして。",
        "zh": "不客气！",
        "ko": "천만에요!",
    },
    "goodbye": {
        "en": "Goodbye!",
        "de": "Auf Wiedersehen!",
        "fr": "Au revoir !",
        "es": "¡Hasta luego!",
        "it": "Arrivederci!",
        "pt": "Até logo!",
        "ja": "またいつでもどうぞ。",
        "zh": "再见！",
        "ko": "안녕히 가세요!",
    },
    "help": {
        "en": "I am Footnote: I answer questions from the documents I was given and show where each answer stands. "
        "Ask a question, or give me a document with /ingest.",
        "de": "Ich bin Footnote: Ich beantworte Fragen aus den Dokumenten, die ich bekommen habe, und zeige, wo die "
        "Antwort steht. Stell eine Frage oder gib mir mit /ingest ein Dokument.",
        "fr": "Je suis Footnote : je réponds à partir des documents qu'on m'a donnés et je montre où se trouve la "
        "réponse. Posez une question ou donnez-moi un document avec /ingest.",
        "es": "Soy Footnote: respondo a partir de los documentos que me han dado y muestro dónde está la respuesta. "
        "Haz una pregunta o dame un documento con /ingest.",
        "it": "Sono Footnote: rispondo in base ai documenti che mi hanno dato e mostro dove si trova la risposta. "
        "Fai una domanda o dammi un documento con /ingest.",
        "pt": "Sou o Footnote: respondo com base nos documentos que recebi e mostro onde está a resposta. "
        "Faça uma pergunta ou dê-me um documento com /ingest.",
        "ja": "Footnote です。預かった文書をもとに質問に答え、その箇所を示します。質問するか、/ingest で文書を渡してください。",
        "zh": "我是 Footnote：根据收到的文档回答问题，并指出答案的出处。请提问，或用 /ingest 给我文档。",
        "ko": "저는 Footnote입니다. 받은 문서로 질문에 답하고 그 위치를 보여 드립니다. 질문하시거나 /ingest로 문서를 주세요.",
    },
    "empty_library": {
        "en": "Nothing has been ingested here yet; use /ingest to add a document.",
        "de": "Hier wurde noch nichts aufgenommen; mit /ingest fügst du ein Dokument hinzu.",
        "fr": "Rien n'a encore été ajouté ici ; utilisez /ingest pour ajouter un document.",
        "es": "Aquí aún no se ha añadido nada; usa /ingest para añadir un documento.",
        "it": "Qui non è stato ancora aggiunto nulla; usa /ingest per aggiungere un documento.",
        "pt": "Ainda não foi adicionado nada aqui; use /ingest para adicionar um documento.",
        "ja": "まだ文書が登録されていません。/ingest で追加してください。",
        "zh": "这里还没有收录任何文档；请用 /ingest 添加。",
        "ko": "아직 등록된 문서가 없습니다. /ingest로 문서를 추가해 주세요.",
    },
    "no_evidence": {
        "en": "The documents don't tell. I searched them and found nothing that answers this; /ingest adds a document.",
        "de": "Die Dokumente sagen dazu nichts. Ich habe gesucht und nichts gefunden, was das beantwortet; mit /ingest "
        "fügst du ein Dokument hinzu.",
        "fr": "Les documents ne le disent pas. J'ai cherché sans rien trouver qui réponde ; /ingest ajoute un document.",
        "es": "Los documentos no lo dicen. He buscado y nada responde a esto; con /ingest se añade un documento.",
        "it": "I documenti non lo dicono. Ho cercato senza trovare una risposta; /ingest aggiunge un documento.",
        "pt": "Os documentos não dizem. Procurei e nada responde a isto; /ingest adiciona um documento.",
        "ja": "文書には書かれていません。検索しましたが、答えになる箇所が見つかりませんでした。/ingest で文書を追加できます。",
        "zh": "文档中没有说明。我搜索过，没有找到能回答的内容；可用 /ingest 添加文档。",
        "ko": "문서에 나와 있지 않습니다. 검색했지만 답이 되는 내용이 없었습니다. /ingest로 문서를 추가할 수 있습니다.",
    },
    "model_abstained": {
        "en": "The documents don't tell: the passages I found are about this, but none answers the question.",
        "de": "Die Dokumente sagen es nicht: Die gefundenen Stellen handeln davon, beantworten die Frage aber nicht.",
        "fr": "Les documents ne le disent pas : les passages trouvés en parlent, mais aucun ne répond à la question.",
        "es": "Los documentos no lo dicen: los pasajes hallados tratan de esto, pero ninguno responde a la pregunta.",
        "it": "I documenti non lo dicono: i passi trovati ne parlano, ma nessuno risponde alla domanda.",
        "pt": "Os documentos não dizem: os trechos encontrados tratam disto, mas nenhum responde à pergunta.",
        "ja": "文書には書かれていません。関連する箇所はありますが、質問の答えにはなっていません。",
        "zh": "文档中没有说明：找到的段落与此有关，但都没有回答这个问题。",
        "ko": "문서에 나와 있지 않습니다. 관련된 내용은 있지만 질문에 답하는 것은 없습니다.",
    },
    "not_a_question": {
        "en": "I see no question there. Ask me something about the documents.",
        "ja": "質問が見当たりません。文書について質問してください。",
        "de": "Darin sehe ich keine Frage. Frag mich etwas zu den Dokumenten.",
    },
    "extractive": {
        "en": "No language model is configured: these are the documents' own sentences.",
        "de": "Es ist kein Sprachmodell eingerichtet: Das sind die Sätze der Dokumente selbst.",
        "fr": "Aucun modèle de langue n'est configuré : ce sont les phrases des documents eux-mêmes.",
        "es": "No hay ningún modelo de lenguaje configurado: son frases de los propios documentos.",
        "it": "Nessun modello linguistico è configurato: queste sono frasi dei documenti stessi.",
        "pt": "Nenhum modelo de linguagem está configurado: estas são frases dos próprios documentos.",
        "ja": "言語モデルが設定されていないため、文書の文をそのまま引用しています。",
        "zh": "未配置语言模型：以下是文档中的原句。",
        "ko": "언어 모델이 설정되지 않아 문서의 문장을 그대로 인용합니다.",
    },
    "fallback": {
        "en": "The language model could not answer ({why}, error {id}); these are the documents' own sentences.",
        "de": "Das Sprachmodell konnte nicht antworten ({why}, Fehler {id}); das sind die Sätze der Dokumente selbst.",
        "ja": "言語モデルが応答できませんでした（{why}、エラー {id}）。文書の文をそのまま引用しています。",
    },
    "cut_off": {
        "en": "The answer reached its length limit and ends early.",
        "de": "Die Antwort hat ihre Längengrenze erreicht und endet vorzeitig.",
        "ja": "回答が長さの上限に達したため、途中で終わっています。",
    },
    "failed": {
        "en": "Something went wrong on our side, and the question could not be answered. Try again; if it stays so, tell "
        "the operator the error id {id}.",
        "de": "Bei uns ist etwas schiefgegangen, die Frage konnte nicht beantwortet werden. Versuch es noch einmal; wenn "
        "es so bleibt, nenne dem Betreiber die Fehlernummer {id}.",
        "ja": "こちらの問題で質問に答えられませんでした。もう一度お試しください。続く場合は、エラー番号 {id} を管理者に伝えてください。",
    },
}


def phrase(key: str, language: str, **values: str) -> str:
    """The sentence `key` in `language`, or in English; `values` fill its braces."""
    texts = _PHRASES[key]
    return texts.get(language, texts["en"]).format(**values)
