package read

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
)

// respellings are cells that people read as numbers, with what is told about them and the number.
var respellings = []struct {
	cell, cause string
	value       float64
}{
	{"−1.5", "a Unicode minus (U+2212)", -1.5},
	{"–1.5", "a dash as minus (U+2013)", -1.5},
	{"—1.5", "a dash as minus (U+2014)", -1.5},
	{"‐1.5", "a hyphen as minus (U+2010)", -1.5},
	{"1e−3", "a Unicode minus (U+2212)", .001},
	{"１２.５", "full-width characters", 12.5},
	{"－１２．５", "full-width characters", -12.5},
	{"٣.٥", "digits of another script", 3.5},
	{"1\u200b2", "an invisible character (U+200B)", 12},
	{"1.5D+03", "a D exponent, as Fortran writes", 1500},
	{"-1.5d-3", "a D exponent, as Fortran writes", -.0015},
	{"1.5Q2", "a Q exponent, as Fortran writes", 150},
	{"$15", "a currency ($)", 15},
	{"-$15.5", "a currency ($)", -15.5},
	{"$-15.5", "a currency ($)", -15.5},
	{"$1,000", "a currency ($)", 1000},
	{"€ 5", "a currency (€)", 5},
	{"5,50 €", "a currency (€)", 5.5},
	{"USD 100", "a currency (USD)", 100},
	{"100 EUR", "a currency (EUR)", 100},
	{"(1.50)", "parentheses, as accounting writes negative numbers", -1.5},
	{"($1.50)", "parentheses, as accounting writes negative numbers and a currency ($)", -1.5},
	{"1.50-", "a minus after its digits", -1.5},
	{"45%", "a percent sign (%)", 45},
	{"−45 %", "a Unicode minus (U+2212) and a percent sign (%)", -45},
	{"12kg", "a unit (kg)", 12},
	{"12.5 °C", "a unit (°C)", 12.5},
	{"3 m/s²", "a unit (m/s²)", 3},
	{"1e3 Hz", "a unit (Hz)", 1000},
	{"<0.01", "a comparison (<)", .01},
	{"≥ 5", "a comparison (≥)", 5},
}

// A number in a spelling that is not read is refused with what keeps it from being read, and what the error says to write is read.
func TestSpellingsAreNamed(t *testing.T) {
	const quote = `"`
	write := regexp.MustCompile(`; write ([^;]+)`)
	flag := regexp.MustCompile(`--(thousands|decimal) (\S+) reads ([^;]+)`)
	for _, c := range respellings {
		for where, content := range map[string]string{
			"a.csv": "a,b,label_x,label_y\n1,2,0,1\n3," + quote + "CELL" + quote + ",1,0\n", "b.csv": "a,label_x,label_y\n1," + quote + "CELL" + quote + ",1\n", "a.libsvm": "0.5,0.5 1:2 2:CELL\n",
		} {
			if where == "a.libsvm" && strings.ContainsAny(c.cell, " ,") {
				continue
			}
			built := func(cell string, o OpenOptions) error {
				src, err := OpenFile(t, where, strings.ReplaceAll(content, "CELL", cell), o)
				if err == nil {
					_, _, err = importer.Build(src, importer.Options{Checks: importer.Checks{Normalize: true}})
				}
				return err
			}
			o := OpenOptions{CSV: CSVOptions{Header: dataset.HeaderYes, Delimiter: ','}}
			if where == "a.libsvm" {
				o = OpenOptions{}
			}
			err := built(c.cell, o)
			datasettest.MustContain(t, err, where, "line ", "it has "+c.cause+"; write ")
			if err == nil {
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(err.Error(), -1) {
				switch {
				case f[3] != fmt.Sprint(c.value): // the other way to read it
				case f[1] == "thousands":
					o.CSV.Thousands = rune(f[2][0])
				default:
					o.CSV.Decimal = f[2]
				}
			}
			m := write.FindStringSubmatch(err.Error())
			if m == nil {
				t.Fatalf("%s: nothing to write: %v", c.cell, err)
			}
			if v, reason := (numbers.Marks{Comma: o.CSV.Decimal == ",", Thousands: o.CSV.Thousands}).Parse(m[1]); reason != "" || math.Abs(v-c.value) > 1e-12 {
				t.Errorf("%s: %s is %v (%s), want %v", c.cell, m[1], v, reason, c.value)
			}
			if err := built(m[1], o); err != nil && !strings.Contains(err.Error(), "negative") {
				t.Errorf("%s as %s: %v", c.cell, m[1], err)
			}
		}
	}
}

// Texts that only look like numbers are no numbers in a strange spelling.
func TestOtherTextsAreNoSpellings(t *testing.T) {
	for _, text := range []string{
		"", "kg", "2021-03-04", "12:30", "A1", "1-2", "10+", "1.2.3", "1st", "22nd", "(a)", "--5", "−−5", "5-−", "1/2", "#5", "12 (of 20)", "1_000", "192.168.0.1", "3 x 4", strings.Repeat("9", 80) + "%",
	} {
		if said := (numbers.Marks{}).Spelling(text); said != "" {
			t.Errorf("%q: %s", text, said)
		}
	}
}
