// Package quadratic is the quadratic model of Eq. 19 of Yan et al. 2007, after Lanitis et al.
// 2004: the number of a row is a = c + w1ᵀx + w2ᵀ(x.²), by least squares.
//
// One collected unit on all training rows is the fit. Features are standardised by the training
// rows, which changes no prediction: the functions that can be fitted are the same. The system
// is solved by Householder QR of the centred columns. A column that is constant is left out.
// Where columns depend on one another, a tiny ridge takes the solution of nearly the least norm,
// and counters and model say so.
package quadratic
