// Package maxent is the maximum-entropy model p(c|x) = exp(w_c·x + b_c) / Σ_c' exp(w_c'·x + b_c')
// (Geng 2016) and what its fits share: the model file, predictions, the kernel of an evaluation and
// of a validation, the objective of a fullbatch.Training, and the path of decays (path.go). Validation
// chooses a decay along the path.
//
// Weights are float64, (features+1)×labels: a row for each feature, then the offsets. They are
// effective weights, which read features as the rows have them: a trainer that scales features
// folds the scaling into the weights.
//
// An evaluation reads each row once, in blocks that stay in a processor's cache. Features and degrees are
// float32 in the shards; weights, scores, exponentials, residuals and all sums are float64. So the optimum
// loses nothing by the blocks.
package maxent
