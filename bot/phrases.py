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
        "en": "Nothing has been ingested here yet; use {ingest} to add a document.",
        "de": "Hier wurde noch nichts aufgenommen; mit {ingest} fügst du ein Dokument hinzu.",
        "fr": "Rien n'a encore été ajouté ici ; utilisez {ingest} pour ajouter un document.",
        "es": "Aquí aún no se ha añadido nada; usa {ingest} para añadir un documento.",
        "it": "Qui non è stato ancora aggiunto nulla; usa {ingest} per aggiungere un documento.",
        "pt": "Ainda não foi adicionado nada aqui; use {ingest} para adicionar um documento.",
        "ja": "まだ文書が登録されていません。{ingest} で追加してください。",
        "zh": "这里还没有收录任何文档；请用 {ingest} 添加。",
        "ko": "아직 등록된 문서가 없습니다. {ingest}로 문서를 추가해 주세요.",
    },
    "no_evidence": {
        "en": "The documents don't tell. I searched them and found nothing that answers this; {ingest} adds a document.",
        "de": "Die Dokumente sagen dazu nichts. Ich habe gesucht und nichts gefunden, was das beantwortet; mit {ingest} "
        "fügst du ein Dokument hinzu.",
        "fr": "Les documents ne le disent pas. J'ai cherché sans rien trouver qui réponde ; {ingest} ajoute un document.",
        "es": "Los documentos no lo dicen. He buscado y nada responde a esto; con {ingest} se añade un documento.",
        "it": "I documenti non lo dicono. Ho cercato senza trovare una risposta; {ingest} aggiunge un documento.",
        "pt": "Os documentos não dizem. Procurei e nada responde a isto; {ingest} adiciona um documento.",
        "ja": "文書には書かれていません。検索しましたが、答えになる箇所が見つかりませんでした。{ingest} で文書を追加できます。",
        "zh": "文档中没有说明。我搜索过，没有找到能回答的内容；可用 {ingest} 添加文档。",
        "ko": "문서에 나와 있지 않습니다. 검색했지만 답이 되는 내용이 없었습니다. {ingest}로 문서를 추가할 수 있습니다.",
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
        "fr": "Je n'y vois pas de question. Demandez-moi quelque chose sur les documents.",
        "es": "No veo ninguna pregunta. Pregúntame algo sobre los documentos.",
        "it": "Non vedo una domanda. Chiedimi qualcosa sui documenti.",
        "pt": "Não vejo uma pergunta. Pergunte-me algo sobre os documentos.",
        "zh": "没有看到问题。请就文档提问。",
        "ko": "질문이 보이지 않습니다. 문서에 대해 물어봐 주세요.",
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
        "fr": "Le modèle de langue n'a pas pu répondre ({why}, erreur {id}) ; ce sont les phrases des documents eux-mêmes.",
        "es": "El modelo de lenguaje no pudo responder ({why}, error {id}); son frases de los propios documentos.",
        "it": "Il modello linguistico non ha potuto rispondere ({why}, errore {id}); queste sono frasi dei documenti stessi.",
        "pt": "O modelo de linguagem não pôde responder ({why}, erro {id}); estas são frases dos próprios documentos.",
        "ja": "言語モデルが応答できませんでした（{why}、エラー {id}）。文書の文をそのまま引用しています。",
        "zh": "语言模型无法回答（{why}，错误 {id}）；以下是文档中的原句。",
        "ko": "언어 모델이 답하지 못했습니다({why}, 오류 {id}). 문서의 문장을 그대로 인용합니다.",
    },
    "model_busy": {
        "en": "it is overloaded",
        "de": "es ist überlastet",
        "fr": "il est surchargé",
        "es": "está saturado",
        "it": "è sovraccarico",
        "pt": "está sobrecarregado",
        "ja": "混雑しています",
        "zh": "负载过高",
        "ko": "과부하 상태입니다",
    },
    "model_declined": {
        "en": "it declined",
        "de": "es hat abgelehnt",
        "fr": "il a refusé",
        "es": "se negó",
        "it": "ha rifiutato",
        "pt": "recusou",
        "ja": "回答を断られました",
        "zh": "它拒绝回答",
        "ko": "답변을 거부했습니다",
    },
    "model_context": {
        "en": "the passages are too long for it",
        "de": "die Textstellen sind ihm zu lang",
        "fr": "les passages sont trop longs pour lui",
        "es": "los pasajes son demasiado largos",
        "it": "i passi sono troppo lunghi",
        "pt": "os trechos são longos demais",
        "ja": "本文が長すぎます",
        "zh": "段落过长",
        "ko": "본문이 너무 깁니다",
    },
    "model_misconfigured": {
        "en": "its settings are wrong, which the operator has to mend",
        "de": "seine Einstellungen stimmen nicht, was der Betreiber beheben muss",
        "fr": "sa configuration est incorrecte, l'opérateur doit la corriger",
        "es": "su configuración es incorrecta; debe corregirla el operador",
        "it": "la sua configurazione è errata e va corretta dal gestore",
        "pt": "a configuração está incorreta e deve ser corrigida pelo operador",
        "ja": "設定に誤りがあり、管理者の対応が必要です",
        "zh": "设置有误，需要管理员处理",
        "ko": "설정이 잘못되어 관리자가 고쳐야 합니다",
    },
    "model_unavailable": {
        "en": "it is unavailable",
        "de": "es ist nicht erreichbar",
        "fr": "il est indisponible",
        "es": "no está disponible",
        "it": "non è disponibile",
        "pt": "não está disponível",
        "ja": "利用できません",
        "zh": "暂不可用",
        "ko": "사용할 수 없습니다",
    },
    "cut_off": {
        "en": "The answer reached its length limit and ends early.",
        "de": "Die Antwort hat ihre Längengrenze erreicht und endet vorzeitig.",
        "fr": "La réponse a atteint sa longueur maximale et s'arrête avant la fin.",
        "es": "La respuesta alcanzó su longitud máxima y termina antes de tiempo.",
        "it": "La risposta ha raggiunto la lunghezza massima e finisce prima del tempo.",
        "pt": "A resposta atingiu o comprimento máximo e termina antes do fim.",
        "ja": "回答が長さの上限に達したため、途中で終わっています。",
        "zh": "回答达到长度上限，提前结束。",
        "ko": "답변이 길이 제한에 도달해 중간에 끝났습니다.",
    },
    "failed": {
        "en": "Something went wrong on our side, and the question could not be answered. Try again; if it stays so, tell "
        "the operator the error id {id}.",
        "de": "Bei uns ist etwas schiefgegangen, die Frage konnte nicht beantwortet werden. Versuch es noch einmal; wenn "
        "es so bleibt, nenne dem Betreiber die Fehlernummer {id}.",
        "fr": "Un problème est survenu de notre côté et la question n'a pas reçu de réponse. Réessayez ; si cela persiste, "
        "donnez à l'opérateur le numéro d'erreur {id}.",
        "es": "Algo falló por nuestra parte y no se pudo responder. Inténtalo de nuevo; si sigue igual, dale al operador "
        "el número de error {id}.",
        "it": "Qualcosa è andato storto da parte nostra e non è stato possibile rispondere. Riprova; se continua, comunica "
        "al gestore il numero di errore {id}.",
        "pt": "Algo deu errado do nosso lado e não foi possível responder. Tente de novo; se continuar, informe ao "
        "operador o número do erro {id}.",
        "zh": "我们这边出了问题，无法回答。请再试一次；如果仍然如此，请把错误编号 {id} 告诉管理员。",
        "ko": "저희 쪽에 문제가 생겨 답하지 못했습니다. 다시 시도해 주세요. 계속되면 관리자에게 오류 번호 {id}를 알려 주세요.",
        "ja": "こちらの問題で質問に答えられませんでした。もう一度お試しください。続く場合は、エラー番号 {id} を管理者に伝えてください。",
    },
}


def phrase(key: str, language: str, **values: str) -> str:
    """The sentence `key` in `language`, or in English; `values` fill its braces."""
    texts = _PHRASES[key]
    return texts.get(language, texts["en"]).format(**values)
