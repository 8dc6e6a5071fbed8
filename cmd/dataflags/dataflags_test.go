package dataflags

import "testing"

func TestDatasetName(t *testing.T) {
	for path, want := range map[string]string{
		"/a/Yeast_alpha.mat": "Yeast_alpha", "digits.csv.gz": "digits", "my data (2).csv": "my_data_2_",
		"2024.csv": "data_2024", ".csv": "data_", "ä.csv": "data__",
	} {
		if got := DatasetName(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
