package read

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// otherArrays are expressions of NumPy for arrays of types that are not read, each with the name that it is saved
// under.
var otherArrays = []struct{ name, expression string }{
	{"features", "numpy.array([[1, 2.5], [3, 4]], dtype=object)"},
	{"features", "numpy.array([['2024-01-01'], ['2024-03-01']], dtype='datetime64[ns]')"},
	{"features", "numpy.array([[5], [7]], dtype='timedelta64[ms]')"},
	{"features", "numpy.array([[1+2j], [3-4j]])"},
	{"features", "numpy.array([[1], [2]], dtype='longdouble')"},
	{"features", "numpy.array([(1, 2.5), (3, 4)], dtype=[('shape', '<f8'), ('b', '<i4')])"},
	{"features", "numpy.array([['1'], ['2.5']])"},
	{"class", "numpy.array(['a', 'b'], dtype=object)"},
	{"class", "numpy.array(['2024-01-01', '2024-03-01'], dtype='datetime64[D]')"},
	{"class", "numpy.array([['a'], ['b']])"},
	{"class", "numpy.array([b'a', b'\\xe9'])"},
	{"row_names", "numpy.array(['a', 'b'], dtype=object)"},
	{"row_names", "numpy.array([7, 8])"},
}

// expressions finds in an error what makes other arrays of an array x.
var expressions = regexp.MustCompile(
	`(?:the array,|and|;|as|expected,) (\S*(?:\(x\b|x\.|\bx)[^;]*?) (?:makes|reads|has)`)

// TestAdviceByNumPy follows the advice of errors about types: NumPy makes the arrays that it names of the array that is
// refused, and they are read.
func TestAdviceByNumPy(t *testing.T) {
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("%s has no NumPy (COPPICE_TEST_PYTHON names another Python): %v", python, err)
	}
	dir := t.TempDir()
	save := func(name, expression, then string) string {
		path := filepath.Join(dir, "a.npz")
		script := fmt.Sprintf("import numpy, numpy.lib.recfunctions\nall = dict(features=numpy.ones((2, 1)), **{'class': "+
			"numpy.array([1, 2])})\n"+
			"x = %s\nall[%q] = %s\nnumpy.savez(%q, **all)", expression, name, then, path)
		if out, err := exec.CommandContext(t.Context(), python, "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s, then %s: %v: %s", expression, then, err, out)
		}
		return path
	}
	read := func(path string) error {
		src, err := Open(path, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		return err
	}
	for _, c := range otherArrays {
		err := read(save(c.name, c.expression, "x"))
		if err == nil {
			t.Errorf("%s is read", c.expression)
			continue
		}
		found := 0
		for _, m := range expressions.FindAllStringSubmatch(err.Error(), -1) {
			if c.name == "class" && m[1] == "x.astype(float)" {
				continue // of numbers; these are texts
			}
			found++
			t.Logf("%s: %s", c.expression, m[1])
			if again := read(save(c.name, c.expression, m[1])); again != nil {
				t.Errorf("%s: %v; with %s: %v", c.expression, err, m[1], again)
			}
		}
		if found == 0 {
			t.Errorf("%s: no advice in %v", c.expression, err)
		}
	}
}
