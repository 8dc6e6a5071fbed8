// Package aabp implements AA-BP (Geng 2016, "Label Distribution Learning"): a network of one
// hidden layer and a softmax, p = softmax(f(x; Θ)), trained by back-propagation in mini-batches.
//
// The paper's network has the squared error as its loss, ½ Σ_c (p_c - d_c)²; public
// implementations have the K-L divergence Σ_c d_c ln(d_c / p_c). Both are here.
package aabp
