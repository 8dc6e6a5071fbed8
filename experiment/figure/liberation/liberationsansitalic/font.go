// Package liberationsansitalic has the font Liberation Sans in the place of another one. See go.mod.
package liberationsansitalic

import "github.com/go-fonts/liberation/liberationsansregular"

// TTF is the font file.
var TTF = liberationsansregular.TTF
