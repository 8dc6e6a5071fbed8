// Package rf implements the single-label random forest that Chen et al. 2018
// compare StructRF with (section 4.4): a row's label is its class of the highest
// degree, the lowest among ties; splits lower the entropy of the labels, and a
// leaf predicts their frequencies. The trees are grown by package forest.
package rf
