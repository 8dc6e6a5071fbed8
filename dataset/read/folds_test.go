package read

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
)

func TestFoldsFile(t *testing.T) {
	path := datasettest.WriteFile(t, "f.csv", "row,fold\n2,1\n0,0\n3,0\n1,2\n")
	folds, k, err := FoldsFile(path, 4)
	if err != nil || k != 3 || !slices.Equal(folds, []uint16{0, 2, 1, 0}) {
		t.Errorf("%v, %d, %v", folds, k, err)
	}
	back, err := dataset.DecodeFolds(dataset.EncodeFolds(folds), 4)
	if err != nil || !slices.Equal(back, folds) {
		t.Errorf("%v, %v", back, err)
	}
	if b := dataset.EncodeFolds([]uint16{1, 258}); string(b) != "\x01\x00\x02\x01" {
		t.Errorf("%x", b)
	}
	if _, err := dataset.DecodeFolds([]byte{1, 2, 3}, 1); !errors.Is(err, dataset.ErrFormat) {
		t.Error(err)
	}
}

func TestFoldsFileErrors(t *testing.T) {
	for content, c := range map[string]struct {
		says string
		want error
	}{
		"":                                       {"line 1: want the columns row and fold", dataset.ErrFormat},
		"row,a\n0,0\n1,1\n":                      {"line 1: want the columns row and fold", dataset.ErrFormat},
		"0,0\n1,1\n":                             {"line 1", dataset.ErrFormat},
		"row,fold\n0,0\n0,1\n":                   {"line 3: row 0 is already listed in line 2", dataset.ErrFormat},
		"row,fold\n0,0\n2,1\n":                   {`line 3: row "2": want a number from 0 to 1`, dataset.ErrFormat},
		"row,fold\n0,0\n-1,1\n":                  {`line 3: row "-1"`, dataset.ErrFormat},
		"row,fold\n0,0\n1,x\n":                   {`line 3: fold "x"`, dataset.ErrFormat},
		"row,fold\n0,0\n1,70000\n":               {`line 3: fold "70000"`, dataset.ErrFormat},
		"row,fold\n0,0\n1,1,1\n":                 {"line 3", dataset.ErrFormat},
		"row,fold\n0,0\n\n\"1,1\n":               {"line 4", dataset.ErrFormat},
		"row,fold\n0,0\n":                        {"row 1 (counted from 0) is missing", dataset.ErrRowCount},
		"row,fold\n0,0\n1,2\n":                   {"fold 1 has no samples", dataset.ErrFormat},
		"row,fold\n0," + strings.Repeat("1", 99): {"line 2: fold", dataset.ErrFormat},
	} {
		_, _, err := FoldsFile(datasettest.WriteFile(t, "f.csv", content), 2)
		datasettest.MustContain(t, err, "f.csv", c.says)
		datasettest.MustBe(t, err, c.want)
	}
	_, _, err := FoldsFile("none.csv", 2)
	datasettest.MustBe(t, err, os.ErrNotExist)
}

func FuzzFolds(f *testing.F) {
	f.Add("row,fold\n2,1\n0,0\n3,0\n1,2\n", 4)
	f.Add("row,fold\n0,65535\n", 1)
	f.Add("sep=|\nrow|fold\n0|0\n1|1\n", 2)
	f.Fuzz(func(t *testing.T, content string, rows int) {
		if rows < 0 || rows > 1000 {
			return
		}
		s, err := readSplits(strings.NewReader(content), rows, nil)
		if err != nil || s.Overlap {
			return
		}
		folds, k := s.Assigned, s.Folds
		if len(folds) != rows || int(slices.Max(folds)) != k-1 {
			t.Errorf("%d folds of %d rows, %d in all", k, rows, len(folds))
		}
	})
}

// TestFoldsOfOtherTools: files that count from 1, or have the index of a pandas frame, are refused with the reason, and
// are read once they are as the reason says.
func TestFoldsOfOtherTools(t *testing.T) {
	for _, c := range []struct{ text, says, mended string }{
		{"row,fold\n0,1\n1,2\n2,1\n", "the folds are numbered from 1 to 2, want numbers from 0: subtract 1 from each",
			"row,fold\n0,0\n1,1\n2,0\n"},
		{"row,fold\n1,0\n2,1\n3,0\n", `row "3": want a number from 0 to 2, because rows are numbered from 0`,
			"row,fold\n0,0\n1,1\n2,0\n"},
		{",row,fold\n0,0,0\n1,1,1\n2,2,0\n", "the first column has no name and seems to be the index of a pandas data " +
			"frame: write the file with to_csv(..., index=False)", "row,fold\n0,0\n1,1\n2,0\n"},
		{"row,fold\n0,0.1\n1,1.0\n2,0.0\n", `fold "0.1": want a whole number from 0 to 65535, in digits`,
			"row,fold\n0,0\n1,1\n2,0\n"},
		{"row,fold\n0,0\n1,2\n2,0\n", "fold 1 has no samples", "row,fold\n0,0\n1,1\n2,0\n"},
	} {
		if _, err := readSplits(strings.NewReader(c.text), 3, nil); err == nil || !strings.Contains(err.Error(), c.says) ||
			!errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.says)
		}
		if s, err := readSplits(strings.NewReader(c.mended), 3, nil); err != nil || s.Folds != 2 {
			t.Errorf("%q: %+v, %v", c.mended, s, err)
		}
	}
}
