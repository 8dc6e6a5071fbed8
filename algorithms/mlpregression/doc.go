// Package mlpregression implements the multi-layer perceptron with which Yan et al. 2007 ("Ranking
// with Uncertain Labels") compare their models: a network of one hidden layer of rectifiers and
// one linear output, which predicts the number of a row on the scale of the labels.
//
// The target is standardised by the training rows. What is minimised is half the squared error,
// in means over mini-batches, and α ‖W‖²/(2 N) of the weights, with N the rows of a mini-batch.
// Training ends after so many passes through the training rows, or once that loss has not fallen
// enough for some of them.
package mlpregression
