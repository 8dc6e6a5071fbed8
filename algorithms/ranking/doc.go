// Package ranking is the ranking model with uncertain labels of Yan et al. 2007: a row x has the
// number uᵀK_x v (Eq. 4), where K_x holds n Gaussian kernels of x and of each landmark, and a
// training row has the interval of the numbers that it may have.
//
// The parameters are those of least
//
//	λ(‖u‖² + ‖v‖²) + Σ_i (l_i - uᵀK_i v)²
//
// with l_i in its interval. An E-step takes the number nearest to the prediction (Eq. 12), at
// first the middle of the interval; the inner loops of an M-step solve for u (Eq. 18) and for v
// (Eq. 17) in turn.
//
// With A = Σ_o v_o K^o a step for u solves (AᵀA + λI) d = Aᵀ(l - A u) - λu and adds d to u, by
// Cholesky. The matrix has the square of A's condition number, so the step is refined: the right
// side is computed again from A and the new u, two or more times, and solved with the same
// factor. A step never solves from scratch: it begins with the u before it.
//
// Features are scaled by the training rows first (package scaling), unless the preset is paper:
// distances and the widths of the kernels are measured in scaled features.
//
// All training rows are landmarks by default. Then one collected unit is the whole fit, with all
// kernel matrices in memory. With the setting landmarks, that many rows drawn by counter are
// landmarks, and the products over rows are rounds of sums. Both run the same state machine,
// alternation.
package ranking
