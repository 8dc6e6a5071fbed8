// Package softmax is what algorithms share whose models predict the softmax of a feature function's
// outputs, an output for each label, and whose Θ goes down a gradient.Descent.
package softmax
