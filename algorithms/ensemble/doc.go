// Package ensemble trains several algorithms and predicts p = Σ_m w_m p_m, the weighted sum of
// what its members predict. The weights are not negative, sum to 1, and have the least
// K-L divergence on out-of-fold predictions of the training rows: each row is predicted by
// models whose training did not see the row. DESIGN.md tells how the jobs run.
package ensemble
