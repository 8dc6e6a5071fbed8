package read

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"pgregory.net/rapid"
)

func TestSniffDialect(t *testing.T) {
	for head, want := range map[string]dialect{
		"a,b\n1,2\n":                         {delimiter: ','},
		"a\n1\n":                             {delimiter: ','},
		"":                                   {delimiter: ','},
		"a;b\n1;2\n":                         {delimiter: ';'},
		"a;b\n1,5;2\n":                       {delimiter: ';', marks: numbers.Marks{Comma: true}},
		"1,5;2,5\n":                          {delimiter: ';', marks: numbers.Marks{Comma: true}},
		"1;2,3;4\n":                          {delimiter: ';', marks: numbers.Marks{Comma: true}},
		"a;b\n1.5;2\n":                       {delimiter: ';'},
		"400.5;401.5\n1,5;2\n":               {delimiter: ';', marks: numbers.Marks{Comma: true}}, // a header
		"sep=;\na,b;c\n":                     {delimiter: ';', skip: 6, before: 1},
		"\"sep=\t\"\r\na\tb\r\n":             {delimiter: '\t', skip: 9, before: 1},
		"sep=,\n1,2\n":                       {delimiter: ',', skip: 6, before: 1},
		"\"a;b\",c\n1,2\n":                   {delimiter: ','}, // the semicolon is quoted
		"name;x\n\"Smith, J\";1\nDoe, J;2\n": {delimiter: ';'},
		"x;y,z\n1,2\n":                       {delimiter: ','},
		"a\tb\n\t\n1\t2,5\n":                 {delimiter: '\t', marks: numbers.Marks{Comma: true}},
		"a|b|c\n1|2|3\n":                     {delimiter: '|'},
		"a,b\n1,2\n3\n4,5\n":                 {delimiter: ','}, // ragged
		"title\na;b\n1;2\n":                  {delimiter: ';'},
		"a;b\n1.024,5;2,5\n":                 {delimiter: ';', marks: numbers.Marks{Comma: true}},
		"a;b;c\nNA;?;\n1,5;NA;\n":            {delimiter: ';', marks: numbers.Marks{Comma: true}},
		"5.1   3.5   0.2\n4.9   3.0   0.3\n": {delimiter: ' '},
		"a b\n1 2 \n 3 4\n":                  {delimiter: ' '},
		"1, 2, 0\n3, 4, 1\n":                 {delimiter: ','},
		"some words\nmore words\n":           {delimiter: ','},
		"1 | 2\n3 | 4\n":                     {delimiter: '|'},
	} {
		if got, err := sniffDialect([]byte(head), true, &OpenOptions{}); got != want || err != nil {
			t.Errorf("%q: %+v, want %+v (error %v)", head, got, want, err)
		}
	}
}

func TestSniffDoubts(t *testing.T) {
	for head, says := range map[string]string{
		"a;b,c\n":                `the separator of columns may be "," or ";"; give it with --delimiter`,
		"a;b|c\nx;y|z\n":         `the separator of columns may be ";" or "|"`,
		"5,1   3,5\n4,0   3,5\n": `the separator of columns may be " " or ","`,
		"a;b\n1,5;2\n1.5;2\n":    `"1,5" (line 2, column 0) has a comma, but "1.5" (line 3`,
		"sep=;\n1;1\n1,5;2.5\n":  `"1,5" (line 3, column 0) has a comma, but "2.5" (line 3`,
	} {
		_, err := sniffDialect([]byte(head), true, &OpenOptions{})
		datasettest.MustContain(t, err, says)
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	}
	for head, o := range map[string]OpenOptions{
		"a;b,c\n":             {CSV: CSVOptions{Delimiter: ';'}},
		"a;b\n1,5;2\n1.5;2\n": {CSV: CSVOptions{Decimal: ","}},
	} {
		if _, err := sniffDialect([]byte(head), true, &o); err != nil {
			t.Errorf("%q with %+v: %v", head, o, err)
		}
	}
}

// TestSniffStart: a first record that is longer than what is looked at, and a last
// one that is cut.
func TestSniffStart(t *testing.T) {
	for _, head := range []string{"a;b;c;d", "a;b\n1,5;2\n1.5,\"", "a;b\n1,5;2\n1.25"} {
		if got, err := sniffDialect([]byte(head), false, &OpenOptions{}); got.delimiter != ';' || err != nil {
			t.Errorf("%q: %+v, error %v", head, got, err)
		}
	}
}

func TestParseDelimiter(t *testing.T) {
	for s, want := range map[string]rune{";": ';', "tab": '\t', `\t`: '\t', "\t": '\t', "§": '§', " ": ' '} {
		if got, err := ParseDelimiter(s); got != want || err != nil {
			t.Errorf("%q: %q, error %v", s, got, err)
		}
	}
	for _, s := range []string{"", ";;", "1", `"`, "\n", ".", "\xff"} {
		_, err := ParseDelimiter(s)
		datasettest.MustContain(t, err, "want one character")
	}
}

func TestMarks(t *testing.T) {
	for field, want := range map[string]float64{"1,5": 1.5, " -2,5e3 ": -2500, "7": 7, ",5": 0.5} {
		if got, reason := (numbers.Marks{Comma: true}).Parse(field); got != want || reason != "" {
			t.Errorf("%q: %v, %s", field, got, reason)
		}
	}
	for field, says := range map[string]string{
		"1.5": "--decimal .", "1.234,5": "--thousands .", "1,234,5": "is not a number", "x": "is not a number",
		"": "is empty",
	} {
		if _, reason := (numbers.Marks{Comma: true}).Parse(field); !strings.Contains(reason.String(), says) {
			t.Errorf("%q: %q lacks %q", field, reason, says)
		}
	}
	for field, says := range map[string]string{"1,5": "--decimal ,", "1,234.5": "thousands",
		"a,b": `"a,b" is not a number`} {
		if _, reason := (numbers.Marks{}).Parse(field); !strings.Contains(reason.String(), says) {
			t.Errorf("%q: %q lacks %q", field, reason, says)
		}
	}
}

// Numbers with marks between thousands are read if a flag says so, and must have them in their places.
func TestThousands(t *testing.T) {
	for _, c := range []struct {
		m     numbers.Marks
		field string
		want  float64 // 0: refused
	}{
		{numbers.Marks{Thousands: ','}, "12,345", 12345},
		{numbers.Marks{Thousands: ','}, " -1,234,567.25 ", -1234567.25},
		{numbers.Marks{Thousands: ','}, "12,34,567", 1234567}, // as in India
		{numbers.Marks{Thousands: ','}, "999", 999},
		{numbers.Marks{Thousands: ','}, "1234.5", 1234.5},
		{numbers.Marks{Thousands: ',', Comma: false}, "1,5", 0},
		{numbers.Marks{Thousands: ','}, "1,2345", 0},
		{numbers.Marks{Thousands: ','}, "0,123", 0},
		{numbers.Marks{Thousands: ','}, ",123", 0},
		{numbers.Marks{Thousands: ','}, "1,,234", 0},
		{numbers.Marks{Thousands: '.', Comma: true}, "1.024,5", 1024.5},
		{numbers.Marks{Thousands: '.', Comma: true}, "1.024", 1024},
		{numbers.Marks{Thousands: '\''}, "1'024.5", 1024.5},
		{numbers.Marks{Thousands: '\''}, "1\u2019024", 1024},
		{numbers.Marks{Thousands: ' ', Comma: true}, "1\u00a0024,5", 1024.5},
		{numbers.Marks{Thousands: ' ', Comma: true}, "1\u202f024 000", 1024000},
	} {
		if got, reason := c.m.Parse(c.field); got != c.want || (reason == "") != (c.want != 0) {
			t.Errorf("%+v reads %q as %v, %s; want %v", c.m, c.field, got, reason, c.want)
		}
	}
}

// Marks that may be between thousands or before decimals are refused if no number of the file shows which, however late
// the first one is; both flags read it.
func TestThousandsOrDecimals(t *testing.T) {
	late := strings.Repeat("7\t0\t1\n", 3*sniffRecords)
	for _, c := range []struct {
		name, content string
		refused       bool
		mark          string
	}{
		{"a.tsv", "a\tlabel_x\tlabel_y\n12,345\t0\t1\n999\t1\t0\n", true, ","},
		{"a.tsv", "a\tlabel_x\tlabel_y\n" + late + "12,345\t0\t1\n999\t1\t0\n", true, ","},
		{"a.csv", "a;label_x;label_y\n12.345;0;1\n999;1;0\n", true, "."},
		{"a.csv", "a,label_x,label_y\n1.024,0,1\n870,1,0\n", true, "."},
		{"a.tsv", "a\tlabel_x\tlabel_y\n12,345\t0\t1\n10,250\t1\t0\n", true, ","},   // a comma in every number
		{"a.tsv", "a\tlabel_x\tlabel_y\n12,345\t0\t1\n999\t0,5\t0,5\n", false, ","}, // decimals of another column
		{"a.tsv", "a\tlabel_x\tlabel_y\n" + late + "12.345\t0\t1\n999\t1\t0\n99.5\t1\t0\n", false, "."},
		{"a.tsv", "a\tlabel_x\tlabel_y\n12,345\t0\t1\n10250\t1\t0\n", false, ","}, // five digits without a mark
		{"a.csv", "a,label_x,label_y\n1.625,0,1\n2,1,0\n.5,1,0\n", false, "."},
		{"a.csv", "a,label_x,label_y\n1.625,0,1\n2.000,1,0\n", false, "."},
		{"a.csv", "a,label_x,label_y\n0.625,0,1\n2,1,0\n", false, "."},
	} {
		_, rows, err := Opened(t, c.name, c.content, OpenOptions{})
		if !c.refused {
			if err != nil || len(rows) != strings.Count(c.content, "\n")-1 {
				t.Errorf("%.60q: %d rows, error %v", c.content, len(rows), err)
			}
			continue
		}
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, `column 0 "a"`, "--thousands "+c.mark+" reads 1", "--decimal "+c.mark+" reads 1")
		_, decimal, err := Opened(t, c.name, c.content, OpenOptions{CSV: CSVOptions{Decimal: c.mark}})
		if err != nil {
			t.Error(err)
			continue
		}
		_, thousand, err := Opened(t, c.name, c.content, OpenOptions{CSV: CSVOptions{Thousands: rune(c.mark[0])}})
		if err != nil {
			t.Error(err)
			continue
		}
		differ := 0
		for i := range decimal {
			if d, th := decimal[i].Values[0], thousand[i].Values[0]; math.Abs(th-1000*d) < 1e-6 {
				differ++
			} else if d != th {
				t.Errorf("%.60q: %v and %v", c.content, d, th)
			}
		}
		if differ == 0 {
			t.Errorf("%.60q: the flags read the same", c.content)
		}
	}
}

// writing is how a table is written.
type writing struct {
	delimiter string
	comma     bool
	quote     bool
	end       string
}

func (w *writing) cell(s string) string {
	if w.quote || strings.Contains(s, w.delimiter) || strings.ContainsAny(s, "\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

func (w *writing) number(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if w.comma {
		s = strings.Replace(s, ".", ",", 1)
	}
	return w.cell(s)
}

// write writes a header and rows, the last two columns labels.
func (w *writing) write(names []string, rows [][]float64) string {
	var b strings.Builder
	var cells []string
	for _, name := range names {
		cells = append(cells, w.cell(name))
	}
	b.WriteString(strings.Join(cells, w.delimiter) + w.end)
	for _, row := range rows {
		cells = cells[:0]
		for _, v := range row {
			cells = append(cells, w.number(v))
		}
		b.WriteString(strings.Join(cells, w.delimiter) + w.end)
	}
	return b.String()
}

// TestWrittenAnyhow: a table is read as the same numbers and names, whatever stands
// between columns and before decimals, however lines end, and in every encoding.
func TestWrittenAnyhow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := writing{
			delimiter: rapid.SampledFrom([]string{",", ";", "\t", "|"}).Draw(r, "delimiter"),
			comma:     rapid.Bool().Draw(r, "comma"), quote: rapid.Bool().Draw(r, "quote"),
			end: rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(r, "end"),
		}
		features := rapid.IntRange(1, 4).Draw(r, "features")
		var names []string
		for i := range features {
			names = append(names, fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"größe", "a b", "x, y", "p;q", `so "called"`}).
				Draw(r, "name"), i))
		}
		rows := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) (row []float64) {
			for range features {
				row = append(row, float64(rapid.Int32().Draw(r, "value"))/1024)
			}
			d := float64(rapid.IntRange(0, 1024).Draw(r, "degree")) / 1024
			return append(row, d, 1-d)
		}), 1, 20).Draw(r, "rows")
		o := OpenOptions{}
		if w.comma && w.delimiter == "," { // which has to be said
			o.CSV.Decimal = ","
		}
		content := w.write(append(slices.Clone(names), "label_a", "label_b"), rows)
		checkWritten(t, r, &w, content, o, names, rows)
	})
}

func checkWritten(t *testing.T, r *rapid.T, w *writing, content string, o OpenOptions, names []string,
	rows [][]float64) {
	b := map[string][]byte{
		"UTF-8": []byte(content), "with a mark": []byte("\ufeff" + content),
		"without the last line end": []byte(strings.TrimSuffix(content, w.end)),
	}
	b["UTF-16LE"], b["UTF-16BE"] = inUTF16(content, binary.LittleEndian), inUTF16(content, binary.BigEndian)
	if w.delimiter != "\t" { // its blanks are no row, but fields
		b["with blank lines"] = []byte(content + w.end + "  " + w.end)
	}
	b["with empty rows"] = []byte(content + strings.Repeat(w.delimiter, len(names)+1) + w.end)
	form := rapid.SampledFrom(slices.Sorted(maps.Keys(b))).Draw(r, "form")
	src, err := OpenBytes(t, "a.csv", b[form], o)
	if err != nil {
		r.Fatalf("%v\n%s", err, content)
	}
	if got := src.Info().FeatureNames; !slices.Equal(got, names) {
		r.Fatalf("names %q, want %q", got, names)
	}
	got, err := datasettest.TryCollect(src)
	if err != nil || len(got) != len(rows) {
		r.Fatalf("%d rows, error %v\n%s", len(got), err, content)
	}
	for i, row := range got {
		if !slices.Equal(slices.Concat(row.Values, row.Labels), rows[i]) {
			r.Fatalf("row %d is %v %v, want %v", i, row.Values, row.Labels, rows[i])
		}
	}
}

// FuzzSniff: a dialect is found or refused, the same again, in bounded memory; the
// delimiter is one that the file has, and a decimal comma goes with another one.
func FuzzSniff(f *testing.F) {
	f.Add([]byte("sep=;\na;b\n1,5;2\n"), true, "")
	f.Add([]byte("a,b\n\"1;2\",3\n"), false, "|")
	f.Add([]byte("1,5;2,5|3\t4\n"), true, "")
	f.Fuzz(func(t *testing.T, head []byte, all bool, delimiter string) {
		o := OpenOptions{}
		o.CSV.Delimiter, _ = ParseDelimiter(delimiter)
		var d dialect
		var err error
		allocs.AtMost(t, 4*(96*len(head)+64<<10), "a dialect", func() { d, err = sniffDialect(head, all, &o) })
		if err != nil {
			datasettest.MustBe(t, err, dataset.ErrAmbiguous)
			return
		}
		if again, err := sniffDialect(head, all, &o); again != d || err != nil {
			t.Fatalf("%+v, then %+v (error %v)", d, again, err)
		}
		if d.skip > len(head) || d.marks.Comma && d.delimiter == ',' || o.CSV.Delimiter != 0 &&
			d.delimiter != o.CSV.Delimiter {
			t.Fatalf("%+v of %q", d, head)
		}
		if d.delimiter != ',' && o.CSV.Delimiter == 0 && !strings.ContainsRune(string(head), d.delimiter) {
			t.Fatalf("%+v of %q", d, head)
		}
	})
}

// FuzzHeader: every column of a first line is one thing at most, and a list of
// columns names some that there are.
func FuzzHeader(f *testing.F) {
	f.Add("id,a,label_c,label_d", "c,0:last", "id", "", "distributions")
	f.Add("0,1,2,mood", "last", "", "0:1", "class")
	f.Add("a,a,,name", "1:0", "a:a", "::", "age")
	f.Fuzz(func(t *testing.T, line, labels, drop, features, kind string) {
		list := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, ",")
		}
		o := OpenOptions{Drop: list(drop), FeatureColumns: list(features), Labels: LabelOptions{Columns: list(labels)}}
		o.Labels.Kind, _ = dataset.ParseLabelKind(kind)
		first := strings.Split(line, ",")
		names := first
		if header, err := hasHeader(first, nil, numbers.Marks{}, &o); err != nil || !header {
			names = nil
		}
		for _, o.NoLabels = range []bool{false, true} {
			c, err := chooseColumns(names, len(first), &o)
			if err != nil {
				continue
			}
			used := slices.Concat(c.features, c.labels)
			if c.rowName >= 0 {
				used = append(used, c.rowName)
			}
			slices.Sort(used)
			if len(slices.Compact(slices.Clone(used))) != len(used) || len(used) > 0 &&
				(used[0] < 0 || used[len(used)-1] >= len(first)) {
				t.Fatalf("%q: %+v", first, c)
			}
			if !o.NoLabels && len(c.labels) == 0 {
				t.Fatalf("%q: no labels and no error", first)
			}
		}
	})
}

// TestMissingWords: the words of FORMAT.md, in any case, and nothing else.
func TestMissingWords(t *testing.T) {
	for _, s := range []string{"", "  ", "NA", "na", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "?", `\N`,
		".", " . "} {
		if !numbers.IsMissing(s) {
			t.Errorf("%q is not missing", s)
		}
	}
	for _, s := range []string{"0", "-1", ".5", "5.", "-.", "..", "-", "n", `\`, "Nancy", "inf", "??"} {
		if numbers.IsMissing(s) {
			t.Errorf("%q is missing", s)
		}
	}
	if !math.IsNaN(numbers.NaN) {
		t.Error("nan is a number")
	}
}
