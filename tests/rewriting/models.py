"""Small models with a GELU in every form, and near-misses that are none."""

import math

import torch
from torch import nn
from torch.nn import functional

ROWS, WIDTH, HIDDEN = 5, 7, 11


def parameter(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, generator=generator).to(dtype))


def example(dtype=torch.float32, width=WIDTH):
    return torch.randn((2, ROWS, width), generator=torch.Generator().manual_seed(9)).to(dtype)


class Written(nn.Module):
    """A model whose forward is a function of itself and x, with parameters of its own."""

    def __init__(self, function, dtype=torch.float32):
        super().__init__()
        self.function = function
        self.weight = parameter(HIDDEN, WIDTH, seed=1, dtype=dtype)
        self.right = parameter(WIDTH, HIDDEN, seed=2, dtype=dtype)
        self.bias = parameter(HIDDEN, seed=3, dtype=dtype)
        self.short = parameter(WIDTH, seed=4, dtype=dtype)
        self.scale = parameter(WIDTH, seed=5, dtype=dtype)
        self.table = parameter(ROWS, WIDTH, seed=6, dtype=dtype)

    def forward(self, x):
        return self.function(self, x)


class Block(nn.Module):
    """A block of a transformer: tokens in, two sites, residuals, tied weights, a near-miss."""

    def __init__(self, vocabulary=13, width=16, hidden=40, heads=2):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.last = nn.LayerNorm(width)
        self.activation = nn.GELU("tanh")
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens):
        x = self.embedding(tokens)
        q, k, v = self.mixed(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        mixed = functional.scaled_dot_product_attention(
            *(part.transpose(-2, -3) for part in (q, k, v))
        )
        x = x + mixed.transpose(-2, -3).flatten(-2)
        x = x + self.dropout(self.down(self.activation(self.up(x))))
        x = x + self.down(self.dropout(quick(self.up(x), 1.7)))
        return functional.gelu(self.last(x)) @ self.embedding.weight.t()


def let(value, function):
    return function(value)


def erf_form(z, c=0.70710678):
    return 0.5 * z * (1 + torch.erf(z * c))


def tanh_form(z):
    return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * torch.pow(z, 3))))


def quick(z, c=1.702):
    return z * torch.sigmoid(c * z)


#: Form to (model's forward, operator, formula).
FORMS = {
    "functional": (
        lambda s, x: functional.gelu(functional.linear(x, s.weight, s.bias)),
        "linear_gelu",
        "erf",
    ),
    "functional, by name": (
        lambda s, x: functional.gelu(functional.linear(bias=s.bias, weight=s.weight, input=x)),
        "linear_gelu",
        "erf",
    ),
    "functional tanh": (
        lambda s, x: functional.gelu(functional.linear(x, s.weight, s.bias), approximate="tanh"),
        "linear_gelu",
        "tanh",
    ),
    "addmm": (
        lambda s, x: functional.gelu(torch.addmm(s.bias, x[0], s.weight.t())),
        "linear_gelu",
        "erf",
    ),
    "addmm of the weight itself": (
        lambda s, x: functional.gelu(torch.addmm(s.bias, x[0], s.right)),
        "linear_gelu",
        "erf",
    ),
    "matmul": (
        lambda s, x: functional.gelu(x @ s.weight.T + s.bias),
        "linear_gelu",
        "erf",
    ),
    "bias first, transpose, erf written out": (
        lambda s, x: erf_form(s.bias + torch.matmul(x, s.weight.transpose(0, 1))),
        "linear_gelu",
        "erf",
    ),
    "linear, bias later": (
        lambda s, x: functional.gelu(functional.linear(x, s.weight) + s.bias),
        "linear_gelu",
        "erf",
    ),
    "bias, erf by division": (
        lambda s, x: let(x + s.short, lambda z: z * (0.5 + 0.5 * torch.erf(z / math.sqrt(2.0)))),
        "bias_gelu",
        "erf",
    ),
    "bias, tanh written out": (lambda s, x: tanh_form(x + s.short), "bias_gelu", "tanh"),
    "bias, tanh of factors": (
        lambda s, x: let(
            x + s.short,
            lambda z: z / 2 * (1 + torch.tanh(0.79788456 * z * (1 + 0.044715 * z * z))),
        ),
        "bias_gelu",
        "tanh",
    ),
    "bias, sigmoid": (lambda s, x: quick(x + s.short), "bias_gelu", "sigmoid"),
    "norm": (
        lambda s, x: functional.gelu(functional.layer_norm(x, (WIDTH,), s.scale, s.short)),
        "layernorm_gelu",
        "erf",
    ),
}

#: Near-miss to (model's forward, words of the reason).
MISSES = {
    "0.70": (lambda s, x: erf_form(x + s.short, 0.70), "the constant 0.7 is off 0.7071067812"),
    "0.7071": (lambda s, x: erf_form(x + s.short, 0.7071), "the constant 0.7071 is off"),
    "1.7": (lambda s, x: quick(x + s.short, 1.7), "the constant 1.7 is off 1.702"),
    "1 (SiLU)": (lambda s, x: quick(x + s.short, 1.0), "the constant 1 is off 1.702"),
    "second user": (
        lambda s, x: let(functional.linear(x, s.weight, s.bias), lambda z: functional.gelu(z) + z),
        "linear is used by add, too",
    ),
    "second user inside": (
        lambda s, x: let(
            x + s.short,
            lambda z: let(torch.erf(z * math.sqrt(0.5)), lambda e: 0.5 * z * (1 + e) + e),
        ),
        "erf is used by add_2, too",
    ),
    "second user, the output": (
        lambda s, x: let(x + s.short, lambda z: (functional.gelu(z), z)),
        "add is used by output, too",
    ),
    "bias of two dimensions": (
        lambda s, x: functional.gelu(x + s.table),
        "the bias is not one-dimensional: [2, 5, 7] and [5, 7] are added",
    ),
    "addmm with a matrix": (
        lambda s, x: functional.gelu(torch.addmm(s.table, x[0], s.right[:, :WIDTH])),
        "the bias is not one-dimensional: [5, 7]",
    ),
    "addmm with alpha": (
        lambda s, x: functional.gelu(torch.addmm(s.bias, x[0], s.right, alpha=2)),
        "addmm has factors",
    ),
    "mixed dtypes": (
        lambda s, x: functional.gelu(x.bfloat16() + s.short),
        "mixed dtypes: x bfloat16, bias float32, result float32",
    ),
    "dropout between": (
        lambda s, x: functional.gelu(
            functional.dropout(functional.linear(x, s.weight, s.bias), 0.1, training=False)
        ),
        "dropout comes between",
    ),
    "changed in place": (
        lambda s, x: let(x + s.short, lambda z: (x.add_(1.0), functional.gelu(z))[1]),
        "add_ changes a tensor in place",
    ),
    "another epsilon": (
        lambda s, x: functional.gelu(functional.layer_norm(x, (WIDTH,), s.scale, s.short, 1e-6)),
        "its layer norm has eps 1e-06, not 1e-05",
    ),
    "norm of two dimensions": (
        lambda s, x: functional.gelu(
            functional.layer_norm(x, (ROWS, WIDTH), s.table, s.table, 1e-5)
        ),
        "its layer norm is over 2 dimensions",
    ),
    "no bias": (
        lambda s, x: functional.gelu(functional.linear(x, s.weight)),
        "its linear has no bias",
    ),
    "a number for a bias": (lambda s, x: functional.gelu(x + 1.0), "a number is added, no bias"),
    "float64": (
        lambda s, x: functional.gelu(x.double() + s.short.double()),
        "float64 is no dtype of the fused operators",
    ),
}
