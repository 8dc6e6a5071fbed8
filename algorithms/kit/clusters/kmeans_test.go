package clusters

import (
	"slices"
	"testing"
)

func points(values ...float64) (rows [][]float64) {
	for _, v := range values {
		rows = append(rows, []float64{v})
	}
	return rows
}

// TestKMeans: groups that are computed by hand.
func TestKMeans(t *testing.T) {
	for name, x := range map[string]struct {
		rows [][]float64
		k    int
		want []int
	}{
		// The mean is 5.4, and its nearest row 9 is the first centre; the row 0 is the farthest.
		"two groups": {points(0, 1, 8, 9, 9), 2, []int{1, 1, 0, 0, 0}},
		// All rows are as near to the mean; the first row is the first centre.
		"equal rows":    {points(3, 3, 3), 2, []int{0, 0, 0}},
		"fewer rows":    {points(7), 3, []int{0}},
		"each a centre": {points(1, 5, 2), 3, []int{2, 1, 0}},
		"one cluster":   {points(0, 1, 3), 1, []int{0, 0, 0}},
		"moves":         {points(0, 4, 6, 7, 20), 2, []int{0, 0, 0, 0, 1}},
		"none":          {nil, 2, []int{}},
	} {
		if got := KMeans(x.rows, x.k); !slices.Equal(got, x.want) {
			t.Errorf("%s: clusters %v, want %v", name, got, x.want)
		}
	}
}

// TestKMeansConverged: each row is in the cluster of the nearest mean.
func TestKMeansConverged(t *testing.T) {
	var rows [][]float64
	for i := range 60 {
		rows = append(rows, []float64{float64(i * i % 61), float64(i * 7 % 13)})
	}
	cluster := KMeans(rows, 4)
	centres := make([][]float64, 4)
	for c := range centres {
		centres[c] = make([]float64, 2)
	}
	move(centres, rows, cluster)
	for i, row := range rows {
		for c := range centres {
			if distance(row, centres[c]) < distance(row, centres[cluster[i]]) {
				t.Fatalf("row %d is in cluster %d, but nearer to the mean of cluster %d", i, cluster[i], c)
			}
		}
	}
}
