// Package ndf implements neural decision forests (Rota Bulò and Kontschieder 2014, "Neural
// decision forests for semantic image labelling"): trees on bootstrap samples whose split nodes
// are small randomised multi-layer perceptrons.
//
// The terms are those of the paper's supplement. A split node sends a row x to the left with
// probability f_L = f(x; Θ) = σ(w₂·tanh(W₁ z + b₁) + b₂) and to the right with f_R = 1 - f_L,
// where z are some of the row's features, standardised at the node. Θ raises the likelihood
// Q(Θ) of the node's labels under the child posteriors π, which maximise it by Eq. 4 of the
// supplement; an ℓ1 penalty on the weights makes it Q_Reg(Θ). Labels are classes in the paper.
// Label distributions d are taken as d_c copies of each class:
//
//	log Q(Θ) = max_π Σ_s Σ_c d_sc ln(π_c^L f_L(x_s) + π_c^R f_R(x_s))
//
// Rows with f_L > ½ go on to the left child. A leaf predicts the mean distribution of its
// training rows, and a forest the mean over its trees; with soft routing a tree predicts all of
// its leaves, weighted by the product of f along their paths.
//
// Trees are collected, encoded and restored by package forest. DESIGN.md says what decides the
// bits, and FORMAT.md describes the bytes.
package ndf
