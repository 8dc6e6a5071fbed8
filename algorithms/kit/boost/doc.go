// Package boost trains ldlogitboost and aoso-ldlogitboost: sums of trees whose softmax is a label
// distribution (Xing, Geng and Xue 2016, "Logistic boosting regression for label distribution
// learning"). The two differ in the Criterion that says what the trees of a round are fitted to;
// everything else is here. Columns, trees and the prediction by trees are those of package forest.
//
// With C labels, F is a row's C numbers and p = softmax(F). F begins at 0 or at the logarithms of
// the mean label distribution. Each round fits trees to the first and second derivatives of the
// cross-entropy by F, and adds them, times the learning rate. A tree grows best first: the leaf
// whose split gains most is split next.
//
// No result depends on the number of lanes, on shards or on the machine. Derivatives are
// whole multiples of 2^-k, so that their sums are exact in any order, and one fixed expression in
// float64 makes a gain: equal splits have equal gains, and
// the one with the lowest feature, then the lowest threshold, is taken. The sums of leaves are added in the order of the trees.
//
// F is no part of the trainer's state: a kernel keeps the sums of its rows with the number of
// rounds that made them, and adds the trees that are new. A kernel that has no sums, or those of a
// later round, begins with the first tree and gets the same bits.
package boost
