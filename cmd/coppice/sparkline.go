package main

import (
	"math"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
)

// levels are the heights of a sparkline's columns.
var levels = []rune("▁▂▃▄▅▆▇█")

// sparkWidth is the number of columns of a sparkline.
const sparkWidth = 40

// sparkline draws the losses that of reads off points, NaN where there is none, over the
// steps, in at most width columns: the mean of each column's, on a logarithmic scale
// between the least and the greatest. It is empty without losses.
func sparkline(points []curve.Point, of func(*curve.Point) float64, width int) string {
	columns := columnsOver(points, of, width)
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, v := range columns {
		if !math.IsNaN(v) {
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	var line strings.Builder
	last := math.NaN()
	for _, v := range columns {
		if math.IsNaN(v) { // no point there: as before
			v = last
		}
		if last = v; !math.IsNaN(v) {
			line.WriteRune(level(v, least, greatest))
		}
	}
	return line.String()
}

// level is the height of a value between the least and the greatest.
func level(v, least, greatest float64) rune {
	if greatest <= least {
		return levels[0]
	}
	share := (v - least) / (greatest - least)
	if least > 0 {
		share = math.Log(v/least) / math.Log(greatest/least)
	}
	return levels[min(len(levels)-1, max(0, int(share*float64(len(levels)))))]
}

// columnsOver returns the mean loss of each column, NaN where there is none.
func columnsOver(points []curve.Point, of func(*curve.Point) float64, width int) []float64 {
	var have []curve.Point
	for i := range points {
		if !math.IsNaN(of(&points[i])) {
			have = append(have, points[i])
		}
	}
	if len(have) == 0 {
		return nil
	}
	first, steps := have[0].Step, have[len(have)-1].Step-have[0].Step
	width = min(width, len(have))
	sums, counts := make([]float64, width), make([]float64, width)
	for i := range have {
		column := 0
		if steps > 0 {
			column = int(float64(have[i].Step-first) / float64(steps) * float64(width-1))
		}
		sums[column] += of(&have[i])
		counts[column]++
	}
	for i := range sums {
		sums[i] /= counts[i] // 0/0: none
	}
	return sums
}

// training and validation read a loss off a point.
func training(p *curve.Point) float64   { return p.Training }
func validation(p *curve.Point) float64 { return p.Validation }
