// This module stands in for the fonts of gonum.org/v1/plot, which embeds all twelve. Figures use only Liberation Sans:
// each package here has this font, so a binary has one font.
module codeberg.org/go-fonts/liberation

go 1.26.0

require github.com/go-fonts/liberation v0.3.3
