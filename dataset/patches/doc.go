// Package patches makes rows of images whose pixels have classes: a row is a small square of an
// image, a patch, and its class is that of the pixel at its centre. A model of such rows labels
// whole images, pixel by pixel.
package patches
