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
    "too_late": {
        "en": "Writing the answer took too long, so these are the best passages as they stand.",
        "de": "Die Antwort zu schreiben dauerte zu lange; hier sind die besten Stellen im Wortlaut.",
        "fr": "La rédaction de la réponse a pris trop de temps ; voici les meilleurs passages tels quels.",
        "es": "Redactar la respuesta tardó demasiado; estos son los mejores pasajes tal como están.",
        "it": "Scrivere la risposta ha richiesto troppo tempo; ecco i passaggi migliori così come sono.",
        "pt": "Escrever a resposta demorou demais; estes são os melhores trechos como estão.",
        "ja": "回答の作成に時間がかかりすぎたため、最も関連の深い箇所をそのまま示します。",
        "zh": "撰写回答用时过长，以下是最相关的原文段落。",
        "ko": "답변 작성에 시간이 너무 오래 걸려 가장 관련 있는 구절을 그대로 보여 드립니다.",
    },
    "no_memory": {
        "en": "The memory of this thread cannot be reached right now, so I answered without what was said before.",
        "de": "Das Gedächtnis dieses Threads ist gerade nicht erreichbar; ich habe ohne das Vorherige geantwortet.",
        "fr": "La mémoire de ce fil est inaccessible pour le moment ; j'ai répondu sans ce qui précède.",
        "es": "La memoria de este hilo no está disponible ahora; he respondido sin lo dicho antes.",
        "it": "La memoria di questa discussione non è raggiungibile ora; ho risposto senza quanto detto prima.",
        "pt": "A memória desta conversa está inacessível agora; respondi sem o que foi dito antes.",
        "ja": "現在このスレッドの記録を読み出せないため、これまでのやり取りを踏まえずに答えました。",
        "zh": "目前无法读取此会话的记录，因此回答时没有参考之前的内容。",
        "ko": "지금은 이 스레드의 기록을 불러올 수 없어 앞선 내용 없이 답했습니다.",
    },
    "gave_up": {
        "en": "This question stopped the process that was answering it several times, so it is not tried again. Tell the "
        "operator the error id {id}.",
        "de": "Bei dieser Frage ist der Prozess, der sie beantwortete, mehrmals abgebrochen; sie wird nicht noch einmal "
        "versucht. Nenne dem Betreiber die Fehlernummer {id}.",
        "fr": "Cette question a interrompu plusieurs fois le processus qui y répondait ; elle n'est plus réessayée. Donnez "
        "à l'opérateur le numéro d'erreur {id}.",
        "es": "Esta pregunta detuvo varias veces el proceso que la respondía y no se vuelve a intentar. Dale al operador "
        "el número de error {id}.",
        "it": "Questa domanda ha interrotto più volte il processo che rispondeva e non viene ritentata. Comunica al "
        "gestore il numero di errore {id}.",
        "pt": "Esta pergunta interrompeu várias vezes o processo que a respondia e não será tentada de novo. Informe ao "
        "operador o número do erro {id}.",
        "ja": "この質問では回答中の処理が何度も中断したため、再試行しません。エラー番号 {id} を管理者に伝えてください。",
        "zh": "回答这个问题的进程多次中断，不再重试。请把错误编号 {id} 告诉管理员。",
        "ko": "이 질문에 답하던 프로세스가 여러 번 중단되어 다시 시도하지 않습니다. 관리자에게 오류 번호 {id}를 알려 주세요.",
    },
    "in_line": {
        "en": "Number {position} in line: I answer the earlier questions of this thread first.",
        "de": "Platz {position} in der Reihe: Zuerst beantworte ich die früheren Fragen dieses Threads.",
        "fr": "Numéro {position} dans la file : je réponds d'abord aux questions précédentes de ce fil.",
        "es": "Número {position} en la cola: primero respondo a las preguntas anteriores de este hilo.",
        "it": "Numero {position} in coda: prima rispondo alle domande precedenti di questa discussione.",
        "pt": "Número {position} na fila: primeiro respondo às perguntas anteriores desta conversa.",
        "ja": "順番は {position} 番目です。先に、このスレッドの前の質問に答えます。",
        "zh": "排在第 {position} 位：我先回答此会话中较早的问题。",
        "ko": "대기 순서 {position}번입니다. 이 스레드의 앞선 질문에 먼저 답합니다.",
    },
    "line_full": {
        "en": "{waiting} questions are already waiting in this thread. Ask again when they are answered.",
        "de": "In diesem Thread warten schon {waiting} Fragen. Frag noch einmal, wenn sie beantwortet sind.",
        "fr": "{waiting} questions attendent déjà dans ce fil. Reposez la vôtre quand elles auront reçu une réponse.",
        "es": "Ya hay {waiting} preguntas en espera en este hilo. Vuelve a preguntar cuando estén respondidas.",
        "it": "In questa discussione ci sono già {waiting} domande in attesa. Richiedi quando avranno una risposta.",
        "pt": "Já há {waiting} perguntas à espera nesta conversa. Pergunte de novo quando forem respondidas.",
        "ja": "このスレッドではすでに {waiting} 件の質問が待っています。回答が済んでからもう一度お尋ねください。",
        "zh": "此会话中已有 {waiting} 个问题在等待。请在它们得到回答后再问。",
        "ko": "이 스레드에는 이미 {waiting}개의 질문이 기다리고 있습니다. 답변이 끝난 뒤 다시 물어봐 주세요.",
    },
    "limited_user": {
        "en": "You have asked {count} questions in the last minute; I can take the next one in {seconds} seconds.",
        "de": "Du hast in der letzten Minute {count} Fragen gestellt; die nächste kann ich in {seconds} Sekunden annehmen.",
        "fr": "Vous avez posé {count} questions dans la dernière minute ; je pourrai prendre la suivante dans {seconds} secondes.",
        "es": "Has hecho {count} preguntas en el último minuto; podré atender la siguiente en {seconds} segundos.",
        "it": "Hai fatto {count} domande nell'ultimo minuto; potrò accettare la prossima tra {seconds} secondi.",
        "pt": "Você fez {count} perguntas no último minuto; poderei receber a próxima em {seconds} segundos.",
        "ja": "この 1 分間に {count} 件の質問をいただきました。次の質問は {seconds} 秒後に受け付けられます。",
        "zh": "你在过去一分钟内提了 {count} 个问题；{seconds} 秒后我可以接受下一个。",
        "ko": "지난 1분 동안 질문을 {count}개 하셨습니다. 다음 질문은 {seconds}초 후에 받을 수 있습니다.",
    },
    "limited_channel": {
        "en": "{count} questions were asked in this channel in the last minute; I can take the next one in {seconds} seconds.",
        "de": "In diesem Kanal wurden in der letzten Minute {count} Fragen gestellt; die nächste kann ich in {seconds} Sekunden "
        "annehmen.",
        "fr": "{count} questions ont été posées dans ce canal dans la dernière minute ; je pourrai prendre la suivante dans "
        "{seconds} secondes.",
        "es": "En este canal se han hecho {count} preguntas en el último minuto; podré atender la siguiente en {seconds} "
        "segundos.",
        "it": "In questo canale sono state fatte {count} domande nell'ultimo minuto; potrò accettare la prossima tra {seconds} "
        "secondi.",
        "pt": "Neste canal foram feitas {count} perguntas no último minuto; poderei receber a próxima em {seconds} segundos.",
        "ja": "このチャンネルでは、この 1 分間に {count} 件の質問がありました。次の質問は {seconds} 秒後に受け付けられます。",
        "zh": "此频道在过去一分钟内有 {count} 个问题；{seconds} 秒后我可以接受下一个。",
        "ko": "이 채널에서 지난 1분 동안 질문이 {count}개 있었습니다. 다음 질문은 {seconds}초 후에 받을 수 있습니다.",
    },
    "limited_to_one": {
        "en": "I take one question a minute here; I can take the next one in {seconds} seconds.",
        "de": "Ich nehme hier eine Frage pro Minute an; die nächste kann ich in {seconds} Sekunden annehmen.",
        "fr": "Je prends ici une question par minute ; je pourrai prendre la suivante dans {seconds} secondes.",
        "es": "Aquí atiendo una pregunta por minuto; podré atender la siguiente en {seconds} segundos.",
        "it": "Qui accetto una domanda al minuto; potrò accettare la prossima tra {seconds} secondi.",
        "pt": "Aqui recebo uma pergunta por minuto; poderei receber a próxima em {seconds} segundos.",
        "ja": "ここでは 1 分に 1 件の質問を受け付けています。次の質問は {seconds} 秒後に受け付けられます。",
        "zh": "我在这里每分钟接受一个问题；{seconds} 秒后我可以接受下一个。",
        "ko": "여기서는 1분에 질문을 하나씩 받습니다. 다음 질문은 {seconds}초 후에 받을 수 있습니다.",
    },
    "refused_workspace": {
        "en": "I am not set up to answer in this workspace. The person who runs me can allow it.",
        "de": "In diesem Workspace darf ich nicht antworten. Wer mich betreibt, kann es erlauben.",
        "fr": "Je ne suis pas configuré pour répondre dans cet espace de travail. La personne qui me gère peut l'autoriser.",
        "es": "No estoy configurado para responder en este espacio de trabajo. Quien me administra puede permitirlo.",
        "it": "Non sono abilitato a rispondere in questo spazio di lavoro. Chi mi gestisce può consentirlo.",
        "pt": "Não estou configurado para responder neste espaço de trabalho. Quem me administra pode permitir isso.",
        "ja": "このワークスペースでは回答できない設定になっています。管理者が許可すれば回答できます。",
        "zh": "我没有被设置为在此工作区回答问题。管理员可以开放权限。",
        "ko": "이 워크스페이스에서는 답하지 않도록 설정되어 있습니다. 운영자가 허용할 수 있습니다.",
    },
    "refused_channel": {
        "en": "I am not set up to answer in this channel. Ask me in another one, or let the person who runs me allow it.",
        "de": "In diesem Kanal darf ich nicht antworten. Frag mich in einem anderen, oder lass es von meinem Betreiber erlauben.",
        "fr": "Je ne suis pas configuré pour répondre dans ce canal. Posez votre question dans un autre, ou demandez à la "
        "personne qui me gère de l'autoriser.",
        "es": "No estoy configurado para responder en este canal. Pregúntame en otro o pide a quien me administra que lo "
        "permita.",
        "it": "Non sono abilitato a rispondere in questo canale. Chiedimi in un altro, o chiedi a chi mi gestisce di "
        "consentirlo.",
        "pt": "Não estou configurado para responder neste canal. Pergunte em outro ou peça a quem me administra que permita.",
        "ja": "このチャンネルでは回答できない設定になっています。別のチャンネルで質問するか、管理者に許可を依頼してください。",
        "zh": "我没有被设置为在此频道回答问题。请到其他频道提问，或请管理员开放权限。",
        "ko": "이 채널에서는 답하지 않도록 설정되어 있습니다. 다른 채널에서 물어보시거나 운영자에게 허용을 요청해 주세요.",
    },
    "refused_user": {
        "en": "You are not on the list of people I answer. The person who runs me can add you.",
        "de": "Du stehst nicht auf der Liste der Leute, denen ich antworte. Wer mich betreibt, kann dich hinzufügen.",
        "fr": "Vous n'êtes pas sur la liste des personnes à qui je réponds. La personne qui me gère peut vous y ajouter.",
        "es": "No estás en la lista de personas a las que respondo. Quien me administra puede añadirte.",
        "it": "Non sei nell'elenco delle persone a cui rispondo. Chi mi gestisce può aggiungerti.",
        "pt": "Você não está na lista de pessoas a quem respondo. Quem me administra pode adicionar você.",
        "ja": "あなたは回答の対象者として登録されていません。管理者に追加を依頼してください。",
        "zh": "你不在我的回答对象名单中。管理员可以把你加进去。",
        "ko": "제가 답할 수 있는 사람 목록에 등록되어 있지 않습니다. 운영자가 추가할 수 있습니다.",
    },
    "refused_size": {
        "en": "This question has {length} characters, and I read at most {limit}. Shorten it, or give me the text as a document "
        "with {ingest} and ask about that.",
        "de": "Diese Frage hat {length} Zeichen, ich lese höchstens {limit}. Kürze sie, oder gib mir den Text mit {ingest} als "
        "Dokument und frag danach.",
        "fr": "Cette question compte {length} caractères, et j'en lis au plus {limit}. Raccourcissez-la, ou donnez-moi le texte "
        "comme document avec {ingest} et interrogez-moi dessus.",
        "es": "Esta pregunta tiene {length} caracteres y leo como máximo {limit}. Acórtala, o dame el texto como documento con "
        "{ingest} y pregunta sobre él.",
        "it": "Questa domanda ha {length} caratteri e ne leggo al massimo {limit}. Accorciala, oppure dammi il testo come "
        "documento con {ingest} e chiedi di quello.",
        "pt": "Esta pergunta tem {length} caracteres, e leio no máximo {limit}. Encurte-a ou dê-me o texto como documento com "
        "{ingest} e pergunte sobre ele.",
        "ja": "この質問は {length} 文字ありますが、読めるのは {limit} 文字までです。短くするか、{ingest} で文書として渡してから質問してください。",
        "zh": "这个问题有 {length} 个字符，我最多读 {limit} 个。请缩短它，或用 {ingest} 把内容作为文档交给我，再就它提问。",
        "ko": "이 질문은 {length}자이고, 저는 최대 {limit}자까지 읽습니다. 줄여 주시거나 {ingest}로 문서로 올린 뒤 물어봐 주세요.",
    },
    "too_busy": {
        "en": "Too many questions are being answered right now. Ask again in a minute.",
        "de": "Gerade werden zu viele Fragen beantwortet. Frag in einer Minute noch einmal.",
        "fr": "Trop de questions sont en cours de traitement. Reposez la vôtre dans une minute.",
        "es": "Se están respondiendo demasiadas preguntas ahora mismo. Vuelve a preguntar en un minuto.",
        "it": "In questo momento ci sono troppe domande. Richiedi tra un minuto.",
        "pt": "Há perguntas demais sendo respondidas agora. Pergunte de novo em um minuto.",
        "ja": "ただいま質問が集中しています。1 分ほどしてからもう一度お尋ねください。",
        "zh": "当前问题过多，请一分钟后再问。",
        "ko": "지금은 질문이 너무 많습니다. 1분 뒤에 다시 물어봐 주세요.",
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
