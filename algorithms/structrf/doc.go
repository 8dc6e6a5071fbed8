// Package structrf implements the structured random forest of Chen et al. 2018
// ("Structured random forest for label distribution learning"): at each node the
// label distributions are clustered into two groups, the split lowers the entropy
// of the groups (Eqs. 1 to 3), and a leaf predicts the mean distribution of its
// rows. The trees are grown by package forest.
package structrf
