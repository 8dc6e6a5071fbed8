// Package maxent is the maximum-entropy model p(c|x) = exp(w_c·x + b_c) / Σ_c' exp(w_c'·x + b_c')
// (Geng 2016) and what its fits share: the model file, predictions, the kernel of an evaluation and
// of a validation, the objective of a fullbatch.Training, and the path of decays (path.go), along which validation
// chooses one.
//
// Weights are float64, (features+1)×labels: a row for each feature, then the offsets. They are
// effective weights, which read features as the rows have them: a trainer that scales features
// folds the scaling into the weights.
package maxent
