"""3×3 convolution, ReLU and 2×2 maximum as sums of matrix products over taps; plain, not tuned.

Places are numbered (image, row, column); a tap reads a block of places, shifted, by channels.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage


@triton.jit
def _numbered(axis: tl.constexpr, BLOCK: tl.constexpr):
    return tl.program_id(axis).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def _picture(ptr, image, row, column, channel, here, stride_n, stride_c, stride_h, stride_w, H, W):
    """Load places (P,) by channels (C,), 0 beyond the border and where `here` is false."""
    inside = here & ((row >= 0) & (row < H) & (column >= 0) & (column < W))[:, None]
    place = image * stride_n + row * stride_h + column * stride_w
    return tl.load(ptr + place[:, None] + channel[None, :] * stride_c, mask=inside, other=0)


@triton.jit
def _let_through(dy_ptr, pick_ptr, image, row, column, channel, here,
                 stride_n, stride_o, stride_h, stride_w, O, PH, PW):  # fmt: skip
    """Load the gradient of the convolution: dy where the pick of its window is this place."""
    inside = (row >= 0) & (column >= 0) & (row < 2 * PH) & (column < 2 * PW)
    inside = here & inside[:, None]
    y, x = row >> 1, column >> 1
    picked = ((image * O)[:, None] + channel[None, :]) * PH + y[:, None]
    picked = tl.load(pick_ptr + picked * PW + x[:, None], mask=inside, other=4)
    corner = (row & 1) * 2 + (column & 1)
    place = (image * stride_n + y * stride_h + x * stride_w)[:, None] + channel[None, :] * stride_o
    return tl.load(dy_ptr + place, mask=inside & (picked == corner[:, None]), other=0)


@triton.jit
def conv_relu_pool_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, pick_ptr, N, C, H, W, O, PH, PW,
    stride_xn, stride_xc, stride_xh, stride_xw, stride_wo, stride_wc, stride_wi, stride_wj,
    stride_bias, BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Store max(0, maximum of a window) (N, O, PH, PW), and which corner it was, 4 for none.

    As in torch the first of equals is picked, and NaN wins.
    """
    p, o = _numbered(0, BLOCK_P), _numbered(1, BLOCK_O)
    image, y, x = p // (PH * PW), p // PW % PH, p % PW
    bias = storage.widen(tl.load(bias_ptr + o * stride_bias, mask=o < O, other=0))[None, :]
    best = tl.full((BLOCK_P, BLOCK_O), float("-inf"), tl.float32)
    pick = tl.zeros((BLOCK_P, BLOCK_O), tl.int32)
    for corner in range(4):
        sums = tl.zeros((BLOCK_P, BLOCK_O), tl.float32)
        for tap in range(9):
            i, j = tap // 3, tap % 3
            row, column = 2 * y + corner // 2 + i - 1, 2 * x + corner % 2 + j - 1
            for start in range(0, C, BLOCK_C):
                c = start + tl.arange(0, BLOCK_C).to(tl.int64)
                here = (p < N * PH * PW)[:, None] & (c < C)[None, :]
                a = _picture(x_ptr, image, row, column, c, here,
                             stride_xn, stride_xc, stride_xh, stride_xw, H, W)  # fmt: skip
                places = c[:, None] * stride_wc + o[None, :] * stride_wo
                b = tl.load(weight_ptr + places + i * stride_wi + j * stride_wj,
                            mask=(c < C)[:, None] & (o < O)[None, :], other=0)  # fmt: skip
                sums = tl.dot(storage.factor(a), storage.factor(b), sums, input_precision="ieee")
        sums += bias
        # Not (sums <= best): NaN is taken, and nothing is taken after it but NaN.
        higher = ((sums > best) | (sums != sums)) & (best == best)
        best = tl.where(higher, sums, best)
        pick = tl.where(higher, corner, pick)
    pick = tl.where(best <= 0, 4, pick)
    best = tl.where(best <= 0, 0.0, best)
    places = (((image * O)[:, None] + o[None, :]) * PH + y[:, None]) * PW + x[:, None]
    inside = (p < N * PH * PW)[:, None] & (o < O)[None, :]
    tl.store(out_ptr + places, storage.narrow(best, out_ptr.dtype.element_ty), mask=inside)
    tl.store(pick_ptr + places, pick.to(tl.int8), mask=inside)


@triton.jit
def conv_input_gradient_kernel(
    dy_ptr, pick_ptr, weight_ptr, dx_ptr, N, C, H, W, O, PH, PW,
    stride_yn, stride_yo, stride_yh, stride_yw, stride_wo, stride_wc, stride_wi, stride_wj,
    BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Store dx (N, C, H, W): the convolution of the gradient with the weight turned half round."""
    p, c = _numbered(0, BLOCK_P), _numbered(1, BLOCK_C)
    image, row, column = p // (H * W), p // W % H, p % W
    sums = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for tap in range(9):
        i, j = tap // 3, tap % 3
        for start in range(0, O, BLOCK_O):
            o = start + tl.arange(0, BLOCK_O).to(tl.int64)
            here = (p < N * H * W)[:, None] & (o < O)[None, :]
            a = _let_through(dy_ptr, pick_ptr, image, row + 1 - i, column + 1 - j, o, here,
                             stride_yn, stride_yo, stride_yh, stride_yw, O, PH, PW)  # fmt: skip
            places = o[:, None] * stride_wo + c[None, :] * stride_wc
            b = tl.load(weight_ptr + places + i * stride_wi + j * stride_wj,
                        mask=(o < O)[:, None] & (c < C)[None, :], other=0)  # fmt: skip
            sums = tl.dot(storage.factor(a), storage.factor(b), sums, input_precision="ieee")
    places = (((image * C)[:, None] + c[None, :]) * H + row[:, None]) * W + column[:, None]
    inside = (p < N * H * W)[:, None] & (c < C)[None, :]
    tl.store(dx_ptr + places, storage.narrow(sums, dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def conv_weight_gradient_kernel(
    dy_ptr, pick_ptr, x_ptr, dweight_ptr, N, C, H, W, O, PH, PW,
    stride_yn, stride_yo, stride_yh, stride_yw, stride_xn, stride_xc, stride_xh, stride_xw,
    BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Store one tap of dweight (O, C, 3, 3): a product over all places, in order."""
    tap = tl.program_id(0).to(tl.int64)
    i, j = tap // 3, tap % 3
    o, c = _numbered(1, BLOCK_O), _numbered(2, BLOCK_C)
    sums = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    for start in range(0, N * H * W, BLOCK_P):
        p = start + tl.arange(0, BLOCK_P).to(tl.int64)
        image, row, column = p // (H * W), p // W % H, p % W
        present = (p < N * H * W)[:, None]
        a = _let_through(dy_ptr, pick_ptr, image, row, column, o, present & (o < O)[None, :],
                         stride_yn, stride_yo, stride_yh, stride_yw, O, PH, PW)  # fmt: skip
        b = _picture(x_ptr, image, row + i - 1, column + j - 1, c, present & (c < C)[None, :],
                     stride_xn, stride_xc, stride_xh, stride_xw, H, W)  # fmt: skip
        a = tl.trans(storage.factor(a))
        sums = tl.dot(a, storage.factor(b), sums, input_precision="ieee")
    places = (o[:, None] * C + c[None, :]) * 9 + tap
    inside = (o < O)[:, None] & (c < C)[None, :]
    tl.store(dweight_ptr + places, storage.narrow(sums, dweight_ptr.dtype.element_ty), mask=inside)
