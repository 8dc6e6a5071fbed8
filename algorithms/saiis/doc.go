// Package saiis is the algorithm SA-IIS of Geng 2016 (IIS-LLD): the maximum-entropy model of package
// maxent, fitted by improved iterative scaling.
//
// With x#_i = Σ_k |x_ik|, an iteration adds to each weight w_kc the root δ_kc of
//
//	h(δ) = Σ_i p_ic x_ik exp(δ sgn(x_ik) x#_i) - Σ_i d_ic x_ik
//
// which increases with δ. Each δ_kc is where its own term of a lower bound of the fall of the loss
// is greatest. These terms are concave, and 0 at δ = 0: a change between 0 and the root lowers the
// loss too. So a root that is not found in time is replaced by the nearest end to 0 of the interval
// that is known to have it, and the loss never rises.
//
// The search for the roots of all weights is one state machine: a round sums, for every weight and
// its present δ, both parts of h (rows with x_ik above and below 0) and h'. The first round of an
// iteration has δ = 0 and tells the loss too; it also ends the iteration before.
package saiis
