// Package forest grows, stores and reads the forests of structrf and rf: trees on
// bootstrap samples whose splits lower the entropy of class labels. The two differ
// in the Labeller that gives each node its class labels and each leaf its
// distribution; everything else is here.
//
// The terms are those of Chen et al. 2018 ("Structured random forest for label
// distribution learning"). A split node sends a row with x_f < t to the left
// (Eq. 1), the gain of a split is the fall of Shannon entropy in nats (Eq. 2), and
// the best split is the one of the greatest gain (Eq. 3), the lowest feature and
// the lowest threshold among ties. A forest predicts the mean of its trees' leaves
// (Eq. 4). Thresholds are tried one by one, or with the adaptive step of Eq. 5.
//
// No result depends on the number of threads or on the machine: counts and
// entropies are integers (see xlogx), the order of every floating-point sum is
// fixed, and random numbers are a function of (seed, tree, path of the node). DESIGN.md
// says how trees are grown fast, and FORMAT.md describes the bytes.
package forest
