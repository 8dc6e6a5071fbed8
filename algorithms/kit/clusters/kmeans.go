// Package clusters divides rows into groups of similar rows.
package clusters

import "math"

// MaxPasses is the greatest number of passes over the rows.
const MaxPasses = 100

// KMeans returns the cluster of each row, from 0 to k-1: the k-means algorithm of Lloyd with Euclidean distances.
// All rows have the same number of values. If there are fewer than k rows, each row is a cluster.
//
// The result depends on the rows alone. The first centre is the row nearest to the mean, and each next centre is the
// row farthest from its nearest centre; of equal distances the lower row counts, and of equal centres the lower one.
// It ends if no row changes its cluster, or after MaxPasses passes. The centre of an empty cluster stays where it is.
func KMeans(rows [][]float64, k int) []int {
	cluster := make([]int, len(rows))
	if len(rows) == 0 {
		return cluster
	}
	centres := firstCentres(rows, min(k, len(rows)))
	for pass := range MaxPasses {
		moved := pass == 0
		for i, row := range rows {
			nearest, least := 0, math.Inf(1)
			for c, centre := range centres {
				if d := distance(row, centre); d < least {
					nearest, least = c, d
				}
			}
			moved = moved || cluster[i] != nearest
			cluster[i] = nearest
		}
		if !moved {
			break
		}
		move(centres, rows, cluster)
	}
	return cluster
}

// firstCentres returns copies of the rows that are the centres at first.
func firstCentres(rows [][]float64, k int) (centres [][]float64) {
	mean := make([]float64, len(rows[0]))
	for _, row := range rows {
		for j, v := range row {
			mean[j] += v
		}
	}
	for j := range mean {
		mean[j] /= float64(len(rows))
	}
	first, least := 0, math.Inf(1)
	for i, row := range rows {
		if d := distance(row, mean); d < least {
			first, least = i, d
		}
	}
	nearest := make([]float64, len(rows)) // the distance of each row from its nearest centre
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	for at := first; ; {
		centre := append([]float64{}, rows[at]...)
		if centres = append(centres, centre); len(centres) == k {
			return centres
		}
		farthest := -1.0
		for i, row := range rows {
			if nearest[i] = min(nearest[i], distance(row, centre)); nearest[i] > farthest {
				at, farthest = i, nearest[i]
			}
		}
	}
}

// move sets each centre to the mean of its rows.
func move(centres, rows [][]float64, cluster []int) {
	count := make([]float64, len(centres))
	for _, c := range cluster {
		count[c]++
	}
	for c, centre := range centres {
		if count[c] > 0 {
			clear(centre)
		}
	}
	for i, row := range rows {
		centre := centres[cluster[i]]
		for j, v := range row {
			centre[j] += v
		}
	}
	for c, centre := range centres {
		if count[c] > 0 {
			for j := range centre {
				centre[j] /= count[c]
			}
		}
	}
}

// distance returns the squared Euclidean distance of two rows.
func distance(a, b []float64) (sum float64) {
	for j, v := range a {
		d := v - b[j]
		sum += float64(d * d)
	}
	return sum
}
