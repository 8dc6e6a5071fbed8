// Package fullbatch is the leader's half of a fit that evaluates a function and its gradient on
// all training rows at every step, in float64: one summed round an evaluation, and a round on
// the validation rows every few iterations. What is minimised is an Objective, by which method
// an Optimiser says: L-BFGS of package lbfgs, or another. After early stopping a refit may train once more, on the
// validation rows too.
//
// The workers' half is the algorithm's own. An evaluation (OpEvaluate) sums the rows, their
// losses and what the objective asks for; a validation (gradient.OpValidate) the rows and their
// losses.
package fullbatch
