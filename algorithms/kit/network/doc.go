// Package network has feature functions of several layers: what algorithms that train a
// gradient.Descent put in the place of a linear function. A Network is a list of Layers:
//
//	Dense        y = Wᵀx + b
//	Convolution  the same on each k×k window of an image
//	ReLU         max(0, x);  Logistic: 1/(1 + exp(-x))
//	Pool         the greatest value, or the mean, of each window
//	Dropout      in training: some values are 0, the others grow
//	Augment      in training: images are mirrored and moved
//	Crop         in training any window of an image, else the one in the middle
//	Norm         layer normalisation (Ba et al. 2016)
//
// Config is what a spec says of a network; it makes the layers. DESIGN.md says in which order
// sums are taken, and what a model file has of a network.
package network
