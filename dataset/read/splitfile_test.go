package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"pgregory.net/rapid"
)

// TestSplitFile reads both kinds of files, and the roles are those of the columns.
func TestSplitFile(t *testing.T) {
	s, err := SplitFile(datasettest.WriteFile(t, "f.csv", "row,fold\n2,1\n0,0\n3,0\n1,2\n"), 4)
	if err != nil || s.Overlap || s.Folds != 3 || !slices.Equal(s.Assigned, []uint16{0, 2, 1, 0}) {
		t.Errorf("%+v, %v", s, err)
	}
	header, rows := []string{"row"}, []string{"1", "0", "2"}
	for k := range 18 { // two words; split k tests row k mod 3, and the last also the next
		header = append(header, "s"+string(rune('a'+k)))
		for i, line := range rows {
			row := int(line[0] - '0')
			bit := ",0"
			if row == k%3 || k == 17 && row == (k+1)%3 {
				bit = ", 1"
			}
			rows[i] += bit
		}
	}
	content := strings.Join(header, ",") + "\n" + strings.Join(rows, "\n") + "\n"
	s, err = SplitFile(datasettest.WriteFile(t, "f.csv", content), 3)
	if err != nil || !s.Overlap || s.Folds != 18 || len(s.Assigned) != 6 {
		t.Fatalf("%+v, %v", s, err)
	}
	blob := dataset.EncodeFolds(s.Assigned)
	for k := range 18 {
		split := dataset.Split{Folds: 18, Fold: k, Assigned: "x", Overlap: true}
		assigned, err := split.Decode(blob, 3)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := split.Assign(3, assigned)
		if err != nil {
			t.Fatal(err)
		}
		for row, role := range roles {
			if want := row == k%3 || k == 17 && row == (k+1)%3; (role == dataset.Test) != want {
				t.Errorf("split %d: row %d is %d", k, row, role)
			}
		}
	}
	if _, err := (dataset.Split{Folds: 18, Assigned: "x", Overlap: true}).Assign(4, s.Assigned); err == nil {
		t.Error("a list of three rows for four")
	}
}

// TestParquetSplitFile: a Parquet file is read as the CSV file with the same table is, whatever the types of its
// columns are. Errors count lines of text. The first line has the names.
func TestParquetSplitFile(t *testing.T) {
	file := func(name string, columns []parquet.WriteColumn, rows [][]any) string {
		return datasettest.WriteFile(t, name, string(parquetOf(columns, len(rows), func(row, column int) any {
			return rows[row][column]
		})))
	}
	const rowColumn, folds = "row", "fold"
	for i, kind := range []parquet.Kind{parquet.Int, parquet.Double} {
		rows := [][]any{{int64(2), int64(1)}, {int64(0), int64(0)}, {int64(3), int64(0)}, {int64(1), int64(2)}}
		for _, row := range rows {
			if kind == parquet.Double {
				row[1] = float64(row[1].(int64))
			}
		}
		s, err := SplitFile(file("f.parquet", []parquet.WriteColumn{{Name: rowColumn, Kind: parquet.Int},
			{Name: folds, Kind: kind}}, rows), 4)
		if err != nil || s.Overlap || s.Folds != 3 || !slices.Equal(s.Assigned, []uint16{0, 2, 1, 0}) {
			t.Errorf("%d: %+v, %v", i, s, err)
		}
	}
	masks := []parquet.WriteColumn{{Name: "test", Kind: parquet.Text}, {Name: rowColumn, Kind: parquet.Int}}
	s, err := SplitFile(file("m.parquet", masks, [][]any{{"True", int64(0)}, {"False", int64(2)}, {"True", int64(1)}}), 3)
	if err != nil || !s.Overlap || !slices.Equal(s.Assigned, []uint16{1, 1, 0}) {
		t.Errorf("%+v, %v", s, err)
	}
	wrong := file("w.parquet", masks, [][]any{{"True", int64(0)}, {"maybe", int64(1)}})
	_, err = SplitFile(wrong, 2)
	datasettest.MustContain(t, err, wrong, "as lines of text", "line 3", `"maybe"`)
	none := datasettest.WriteFile(t, "none.parquet", "PAR1PAR1")
	_, err = SplitFile(none, 2)
	datasettest.MustContain(t, err, none)
	_, err = SplitFile(none+"x.parquet", 2)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestSplitFileSpellings: what spreadsheets, pandas and R write is read as the plain file is.
func TestSplitFileSpellings(t *testing.T) {
	for _, c := range []struct{ plain, text string }{
		{"row,fold\n0,0\n1,1\n2,0\n", "Row,Fold\n0,0\n1,1\n2,0\n"},
		{"row,fold\n0,0\n1,1\n2,0\n", "fold,row\n0,0\n1,1\n0,2\n"},
		{"row,fold\n0,0\n1,1\n2,0\n", "FOLD;ROW\n0.0;0\n1.0;1.0\n0.00;2\n"},
		{"row,a,b\n0,1,0\n1,0,1\n2,0,1\n", "Row,a,b\n0,True,False\n1,FALSE,TRUE\n2,false,true\n"},
		{"row,a,b\n0,1,0\n1,0,1\n2,0,1\n", "a,row,b\ntest,0,train\nTrain,1,Test\nTRAIN,2,TEST\n"},
		{"row,a,b\n0,1,0\n1,0,1\n2,0,1\n", "a,b,ROW\n1.0,0.0,0\n0.0,1.0,1\n0,1,2\n"},
		{"row,split\n0,1\n1,0\n2,0\n", "split,row\ntest,0\ntrain,1\ntrain,2\n"},
	} {
		want, err := readSplits(strings.NewReader(c.plain), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readSplits(strings.NewReader(c.text), 3, nil)
		if err != nil || !slices.Equal(got.Assigned, want.Assigned) || got.Folds != want.Folds ||
			got.Overlap != want.Overlap {
			t.Errorf("%q: %+v, %v, want %+v", c.text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"row,Row,a\n0,0,1\n":                "found two columns named row",
		"row,fold\n0,train\n1,test\n2,test": `line 2: fold "train": want a whole number from 0 to 65535, in digits; a column that marks the samples of a split must not be called fold`,
		"row,fold\n0,0.5\n1,1\n2,0\n":       `line 2: fold "0.5": want a whole number`,
		"row,a\n0,yes\n1,no\n2,no\n":        `line 2: "a" is "yes": want 1 for a test sample and 0 for others, or True and False, or test and train`,
		"row,a,\n0,1,0\n":                   "column 2 (counted from 0) has no name",
		",Row,a\n0,0,1\n":                   "the first column has no name and seems to be the index of a pandas data frame",
	} {
		_, err := readSplits(strings.NewReader(text), 3, nil)
		datasettest.MustContain(t, err, says)
		datasettest.MustBe(t, err, dataset.ErrFormat)
	}
}

func TestSplitFileErrors(t *testing.T) {
	for content, c := range map[string]struct {
		says string
		want error
	}{
		"row,a,b\n0,1,0\n1,0,2\n": {`line 3: "b" is "2": want 1 for a test sample and 0 for others`, dataset.ErrFormat},
		"row,a,b\n0,1,0\n1,0\n":   {"line 3", dataset.ErrFormat},
		"row,a,b\n0,1,0\n1,0,\n":  {`line 3: "b" is ""`, dataset.ErrFormat},
		"row,a,b\n0,1,0\n0,0,1\n": {"line 3: row 0 is already listed in line 2", dataset.ErrFormat},
		"row,a,b\n0,1,0\n2,0,1\n": {`line 3: row "2": want a number from 0 to 1`, dataset.ErrFormat},
		"row,a,b\n0,1,0\n":        {"row 1 (counted from 0) is missing", dataset.ErrRowCount},
		"row,a,b\n0,1,0\n1,0,0\n": {`split "b" has no test samples`, dataset.ErrFormat},
		"row,a,b\n0,1,1\n1,0,1\n": {`split "b" tests every sample`, dataset.ErrFormat},
		"row,a,a\n0,1,0\n1,0,1\n": {"both named", dataset.ErrFormat},
		"line,a\n0,1\n1,0\n": {"line 1: want the columns row and fold, or row and one column of 0 and 1 for each split",
			dataset.ErrFormat},
		"row\n0\n1\n": {"line 1", dataset.ErrFormat},
		"row" + strings.Repeat(",a", dataset.MaxSplits+1) + "\n": {"found 1025 splits, want at most 1024", dataset.ErrFormat},
	} {
		_, err := SplitFile(datasettest.WriteFile(t, "f.csv", content), 2)
		datasettest.MustContain(t, err, "f.csv", c.says)
		datasettest.MustBe(t, err, c.want)
	}
	_, err := SplitFile("none.csv", 2)
	datasettest.MustBe(t, err, os.ErrNotExist)
}

// FuzzSplitFile: a file of splits is refused, or each of its splits has test rows and others.
func FuzzSplitFile(f *testing.F) {
	f.Add("row,a,b\n0,1,0\n1,0,1\n", 2)
	f.Add("row,fold\n1,0\n0,1\n", 2)
	f.Add("sep=;\nrow;a;b\n0;1;0\n1;0;1\n", 2)
	f.Add("row"+strings.Repeat(",a", 40)+"\n0", 1)
	f.Add("ro"+strings.Repeat(";", 3000)+"\n0", 42)
	f.Fuzz(func(t *testing.T, content string, rows int) {
		if rows < 0 || rows > 1000 {
			return
		}
		var s *dataset.SplitList
		var err error
		allocs.AtMost(t, 160*len(content)+(16+2*len(content)/8)*rows+64<<10, "a split file", func() {
			s, err = readSplits(strings.NewReader(content), rows, nil)
		})
		if err != nil || !s.Overlap {
			return
		}
		for k := range s.Folds {
			roles, err := dataset.Split{Folds: s.Folds, Fold: k, Assigned: "x", Overlap: true}.Assign(rows, s.Assigned)
			if err != nil {
				t.Fatal(err)
			}
			if n := datasettest.CountRole(roles, dataset.Test); n == 0 || n == rows {
				t.Fatalf("split %d tests %d of %d rows", k, n, rows)
			}
		}
	})
}

// TestInnerFolds: the inner folds of a fold cut its training rows, its test rows are outside,
// and no other field of the split changes; validation rows come off the inner training rows.
func TestInnerFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(30, 60).Draw(t, "rows")
		outer := dataset.Split{Seed: rapid.Uint64().Draw(t, "seed"), Folds: rapid.IntRange(4, 6).Draw(t, "folds")}
		outer.Fold = rapid.IntRange(0, outer.Folds-1).Draw(t, "fold")
		var assigned []uint16
		switch rapid.IntRange(0, 2).Draw(t, "listed") {
		case 1:
			outer.InnerWhole = true
			fallthrough
		case 2:
			outer.Assigned = "x"
			for row := range rows {
				assigned = append(assigned, uint16(row%outer.Folds))
			}
		}
		whole := outer
		whole.InnerWhole = false
		before, err := whole.Assign(rows, assigned)
		if err != nil {
			t.Fatal(err)
		}
		inner := outer
		inner.Inner = rapid.IntRange(2, 3).Draw(t, "inner")
		inner.ValidationFraction = rapid.SampledFrom([]float64{0, .3}).Draw(t, "validation")
		tested, together := make([]int, rows), map[uint16]int{}
		for inner.InnerFold = range inner.Inner {
			roles, err := inner.Assign(rows, assigned)
			if err != nil {
				t.Fatal(err)
			}
			for row, role := range roles {
				if (role == dataset.Outside) != (before[row] == dataset.Test) {
					t.Fatalf("row %d has the role %d, %d before", row, role, before[row])
				}
				if role == dataset.Test {
					tested[row]++
					if outer.InnerWhole {
						if f, ok := together[assigned[row]]; ok && f != inner.InnerFold {
							t.Fatalf("the rows of fold %d are tested in inner folds %d and %d", assigned[row], f, inner.InnerFold)
						}
						together[assigned[row]] = inner.InnerFold
					}
				}
			}
			if n := datasettest.CountRole(roles, dataset.Validation); (n > 0) != (inner.ValidationFraction > 0) ||
				datasettest.CountRole(roles, dataset.Train) == 0 || datasettest.CountRole(roles, dataset.Test) == 0 {
				t.Fatalf("%d rows validate, %d train, %d test", n, datasettest.CountRole(roles, dataset.Train),
					datasettest.CountRole(roles, dataset.Test))
			}
		}
		for row, n := range tested {
			if (n == 1) != (before[row] != dataset.Test) || n > 1 {
				t.Fatalf("row %d is tested %d times", row, n)
			}
		}
	})
}

// TestOutsideIsUnseen: no selection of roles but its own has outside rows.
func TestOutsideIsUnseen(t *testing.T) {
	m, shards, err := importer.Build(generate.Artificial(40, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := dataset.Split{Seed: 3, TestFraction: 0.25, Inner: 3, InnerFold: 1}
	roles, err := s.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, r := range shards {
		d.SetShard(i, r)
	}
	if n := len(d.Select(0, len(shards), dataset.AllRows)); n != 30 {
		t.Errorf("%d rows are seen, want 30", n)
	}
	b, err := json.Marshal(dataset.Split{Seed: 3, TestFraction: 0.25})
	if err != nil || string(b) != `{"seed":3,"test_fraction":0.25}` {
		t.Errorf("a split without inner folds is %s", b)
	}
}

// TestSplitsThatCannotBe are refused.
func TestSplitsThatCannotBe(t *testing.T) {
	for _, s := range []dataset.Split{
		{Inner: 1}, {Inner: -2}, {Inner: 3, InnerFold: 3}, {Inner: 3, InnerFold: -1}, {InnerFold: 1}, {InnerWhole: true},
		{Inner: 2, InnerWhole: true}, {Folds: 3, Assigned: "x", Inner: 3, InnerWhole: true}, {Inner: dataset.MaxFolds + 1},
		{Overlap: true}, {Overlap: true, Folds: 3}, {Overlap: true, Assigned: "x"}, {Overlap: true, Assigned: "x",
			Folds: dataset.MaxSplits + 1},
	} {
		if _, err := s.Assign(4, make([]uint16, 4)); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// TestSplitColumnsByName: 1 in a column that is called as training rows trains, and a column whose name says both, or
// two columns of one split, are refused.
func TestSplitColumnsByName(t *testing.T) {
	for content, want := range map[string][]uint16{
		"row,train\n0,1\n1,1\n2,0\n":               {0, 0, 1},
		"row,is_train\n0,True\n1,1\n2,False\n":     {0, 0, 1},
		"row,train\n0,train\n1,train\n2,test\n":    {0, 0, 1},
		"row,train1,train2\n0,1,0\n1,1,1\n2,0,1\n": {2, 0, 1},
		"row,test\n0,1\n1,0\n2,0\n":                {1, 0, 0},
		"row,split\n0,1\n1,0\n2,0\n":               {1, 0, 0},
		"row,strain\n0,1\n1,0\n2,0\n":              {1, 0, 0},
		"row,val\n0,test\n1,train\n2,train\n":      {1, 0, 0},
	} {
		s, err := SplitFile(datasettest.WriteFile(t, "s.csv", content), 3)
		if err != nil || !slices.Equal(s.Assigned, want) {
			t.Errorf("%q: %+v, %v", content, s, err)
		}
	}
	for content, says := range map[string]string{
		"row,train,test\n0,1,0\n1,1,0\n2,0,1\n":           `columns "train" and "test" may describe one split or two`,
		"row,train,val,test\n0,1,0,0\n1,0,1,0\n2,0,0,1\n": "remove one column",
		"row,val\n0,1\n1,0\n2,0\n":                        "write test and train",
		"row,train_test\n0,1\n1,0\n2,0\n":                 "or call the column test if 1 means test",
	} {
		_, err := SplitFile(datasettest.WriteFile(t, "s.csv", content), 3)
		if !errors.Is(err, dataset.ErrAmbiguous) {
			t.Errorf("%q: %v", content, err)
			continue
		}
		datasettest.MustContain(t, err, says)
	}
}

// TestWriteSplit reads again what it writes: folds and splits, also where rows are left out. A reader that does not
// know of them refuses their empty fields.
func TestWriteSplit(t *testing.T) {
	path := datasettest.WriteFile(t, "s.csv", "")
	rapid.Check(t, func(t *rapid.T) {
		n, want := rapid.IntRange(2, 60).Draw(t, "rows"), &dataset.SplitList{Overlap: rapid.Bool().Draw(t, "overlap")}
		if want.Overlap {
			want.Folds = rapid.IntRange(1, 40).Draw(t, "splits")
			words := dataset.SplitWords(want.Folds)
			want.Assigned = make([]uint16, n*words)
			for k := range want.Folds {
				from := rapid.IntRange(0, n-1).Draw(t, "from")
				to := rapid.IntRange(from+1, min(n, from+n-1)).Draw(t, "to")
				for row := from; row < to; row++ {
					want.Assigned[row*words+k/16] |= 1 << (k % 16)
				}
			}
		} else {
			want.Folds = rapid.IntRange(1, n).Draw(t, "folds")
			for row := range n {
				want.Assigned = append(want.Assigned, uint16(row%want.Folds))
			}
		}
		exactlyOne := func(row int) bool { // by the roles
			tests := 0
			for k := range want.Folds {
				roles, err := dataset.Split{Folds: want.Folds, Fold: k, Assigned: "x", Overlap: want.Overlap}.Assign(n,
					want.Assigned)
				if err != nil {
					t.Fatal(err)
				}
				if roles[row] == dataset.Test {
					tests++
				}
			}
			return tests == 1
		}
		one := true
		for row := range n {
			one = one && exactlyOne(row)
		}
		if folds := want.Disjoint(); folds.Overlap == one {
			t.Fatalf("%+v as folds is %+v", want, folds)
		}
		m, row := &dataset.Manifest{Rows: n}, 0
		last := -1
		for range rapid.IntRange(0, 5).Draw(t, "left out") {
			if row = rapid.IntRange(last+1, last+9).Draw(t, "row"); row > n {
				break // the rows before are all in the file
			}
			m.LeftOut.Add(last, row)
			last = row
		}
		var b bytes.Buffer
		if err := WriteSplit(m, &b, want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := SplitFor(m, path)
		if err != nil || got.Overlap != want.Overlap || got.Folds != want.Folds ||
			!slices.Equal(got.Assigned, want.Assigned) {
			t.Fatalf("%s\ngives %+v, %v, want %+v", b.String(), got, err, want)
		}
		if _, err := SplitFile(path, m.FileRows()); (err != nil) != (len(m.LeftOut) > 0) {
			t.Fatalf("%s\nwithout the rows that are left out: %v", b.String(), err)
		}
		if err := WriteSplit((&dataset.Manifest{Rows: n + 1}), io.Discard, want); err == nil {
			t.Fatal("a division of other rows")
		}
	})
}

// TestFoldsOfSplits makes folds of splits with distinct test rows, and takes an empty field only for a row that is left
// out.
func TestFoldsOfSplits(t *testing.T) {
	folds := &dataset.SplitList{Assigned: []uint16{2, 0, 0, 2, 1 << 3, 0}, Folds: 20, Overlap: true}
	if got := folds.Disjoint(); got.Overlap || got.Folds != 20 || !slices.Equal(got.Assigned, []uint16{1, 17, 3}) {
		t.Errorf("as folds: %+v", got)
	}
	kept := &dataset.Manifest{Rows: 2, LeftOut: dataset.LeftOut{2}}
	for content, says := range map[string]string{
		"row,fold\n0,1\n1,\n2,2\n": "numbered from 1 to 2",
		"row,fold\n0,\n1,0\n2,1\n": `line 2: fold ""`,
		"row,a\n0,\n1,0\n2,1\n":    `line 2: "a" is ""`,
		"row,a\n0,1\n1,\n2,1\n":    "tests every sample",
	} {
		_, err := SplitFor(kept, datasettest.WriteFile(t, "f.csv", content))
		datasettest.MustContain(t, err, says)
	}
}
