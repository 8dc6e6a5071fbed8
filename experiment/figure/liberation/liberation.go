// Package liberation stands in for the fonts of gonum.org/v1/plot. See go.mod.
package liberation
