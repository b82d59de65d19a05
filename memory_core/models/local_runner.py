"""Runs a sentence model: words to tokens, tokens through the network, the mean of what comes out. Heavy: only its own process imports it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from memory_core import limits
from memory_core.models.local_files import MODEL_FILE, TOKENIZER_FILE, VOCABULARY_FILE, LocalModel, check

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class LocalRunner:
    """One loaded model. Used by one thread at a time."""

    def __init__(self, model: LocalModel) -> None:
        """Reads its files, and looks first whether they are those that were added: `Corrupt`. Some hundred MB of memory."""
        # It has no type information.
        onnxruntime: Any = importlib.import_module("onnxruntime")
        check(model)
        self.model = model
        self._tokenizer = _tokenizer(model)
        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads = limits.LOCAL_THREADS
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(
            str(model.paths[MODEL_FILE]), options, providers=["CPUExecutionProvider"]
        )
        self._takes = {given.name for given in self._session.get_inputs()}

    def vector(self, text: str) -> NDArray[numpy.float32]:
        """Of length 1."""
        import numpy

        encoded = self._tokenizer.encode(text)
        ids = numpy.array([encoded.ids], dtype=numpy.int64)
        given = {
            "input_ids": ids,
            "attention_mask": numpy.ones_like(ids),
            "token_type_ids": numpy.zeros_like(ids),
        }
        out = self._session.run(None, {name: value for name, value in given.items() if name in self._takes})[
            0
        ]
        # Of each token, or of the whole text already.
        mean = out[0].mean(axis=0) if out.ndim == 3 else out[0]
        return (mean / max(float(numpy.linalg.norm(mean)), 1e-12)).astype(numpy.float32)


def _tokenizer(model: LocalModel) -> Any:
    import tokenizers

    tokenizer: Any
    if TOKENIZER_FILE in model.paths:
        tokenizer = tokenizers.Tokenizer.from_file(str(model.paths[TOKENIZER_FILE]))
    else:
        tokenizer = tokenizers.BertWordPieceTokenizer(  # pyright: ignore[reportPrivateImportUsage]
            str(model.paths[VOCABULARY_FILE]), lowercase=True
        )
    # A file may ask for padding to its own length: that would be computed for nothing.
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.manifest.max_tokens)
    return tokenizer
