// Package liberationsansregular has the font Liberation Sans for the figures.
package liberationsansregular

import "github.com/go-fonts/liberation/liberationsansregular"

// TTF is the font file.
var TTF = liberationsansregular.TTF
