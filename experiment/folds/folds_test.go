package folds

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"pgregory.net/rapid"
)

// seeds are those of golden.
var seeds = []uint32{0, 1, 2, 3, 4, 5, 42, 2025, 1 << 31, math.MaxUint32}

// golden has, by number of rows, for each of seeds the first 8 bytes of the SHA-256 of the
// folds of scikit-learn 1.9.1 (NumPy 2.4.6), a little-endian uint16 for each row:
//
//	for fold, (_, test) in enumerate(KFold(10, shuffle=True, random_state=seed).split(zeros(rows))):
//	    folds[test] = fold
//
// The numbers of rows are those of SJAFFE, Music, FG-Net, digits, Yeast and Movie.
var golden = map[int]string{
	213: "0965338819212c9d 1a0318b70c273825 40bc5cc4eae90b27 dcb8c172bd5b5df2 3285765053f72518 a77b0c4989d976ee " +
		"936df361db311b79 242ee5435c3c4021 41a1e86dec809df6 980f6df232e9d049",
	360: "653c5ca106b19194 ec87b2be611a1a1a 3a37ccc0f7435970 12ea33d527296c9b 7ae9f28f0b15b4e8 d3ee67cf11b8bff3 " +
		"75203080e4c6e303 820ab625e5b8fbfb b6a82eaa636247ce b65f8b4bd407e509",
	1002: "d19db89d61fc3f6d c3edec316cb6d87b 3ac7ed5cd07fc26c 0e93c91b7886e37b 4519de660a0498cb 68b1495bd267220c " +
		"a3323fc942cc466b 4d41725a155a4c5a 38eb2d34cd7952b6 18a1927be8108a19",
	1797: "ea725ab07a46ca41 af3482e2dd701c18 3520f33f41c17793 0144207ba125ce5c 81ae0b55e33f4acb 3128f1d1da6214bf " +
		"7735474526acdc5e 1380eb10fb39e86d 3972d189796c7cc4 a2f15cdfbb4b9cdb",
	2465: "ddf4520478041b4d 892c8b92bcdae80a 7d3bb5f27777f086 991a0fbf99c8a144 b9c8c40ce75936c1 c1f490521304a2e5 " +
		"8a311ac5c435fa36 518958de3dd0defe 3795c8372cbf557f 28731d0d0c3c9b36",
	7755: "e7292d7d2fb8fd94 ca4e6f229e288b85 f9709a93f31319e9 1f220b248b23999b a487ab40bf98e12c b68c57284a558d15 " +
		"2e846e093acd7b72 5478ce301852a76d 476db63571931453 87037a0294a6d394",
}

func TestKFoldAsScikitLearn(t *testing.T) {
	for rows, want := range golden {
		var got []string
		for _, seed := range seeds {
			folds, err := KFold(rows, 10, seed)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(dataset.EncodeFolds(folds))
			got = append(got, hex.EncodeToString(sum[:8]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d samples: %v, want %s", rows, got, want)
		}
	}
	// Small ones, printed by the same script.
	for _, c := range []struct {
		k    int
		seed uint32
		want []uint16
	}{
		{3, 5, []uint16{1, 1, 0, 2, 0, 2, 0}},
		{2, 0, []uint16{1, 0}},
		{10, 9, []uint16{7, 4, 3, 6, 1, 9, 8, 2, 0, 5}},
	} {
		if got, err := KFold(len(c.want), c.k, c.seed); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d folds of %d samples, seed %d: %v, %v", c.k, len(c.want), c.seed, got, err)
		}
	}
}

// TestKFoldBesideScikitLearn computes golden with the scikit-learn that is here.
func TestKFoldBesideScikitLearn(t *testing.T) {
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import sklearn").Run(); err != nil {
		t.Skipf("%s has no scikit-learn (COPPICE_TEST_PYTHON names another Python): %v", python, err)
	}
	const script = `
import sys, hashlib, numpy, sklearn.model_selection as s
for samples in sys.argv[1].split(","):
    hashes = []
    for seed in sys.argv[2].split(","):
        folds = numpy.zeros(int(samples), "<u2")
        for fold, (_, test) in enumerate(s.KFold(10, shuffle=True, random_state=int(seed)).split(folds)):
            folds[test] = fold
        hashes.append(hashlib.sha256(folds.tobytes()).hexdigest()[:16])
    print(" ".join(hashes))`
	var rows, numbers, want []string
	for n, hashes := range golden {
		rows, want = append(rows, strconv.Itoa(n)), append(want, hashes)
	}
	for _, seed := range seeds {
		numbers = append(numbers, strconv.FormatUint(uint64(seed), 10))
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", script, strings.Join(rows, ","),
		strings.Join(numbers, ",")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if got != want[i] {
			t.Errorf("%s samples: scikit-learn has %s, golden is %s", rows[i], got, want[i])
		}
	}
}

// TestGoldenRows: each dataset that is here has as many rows as one of golden.
func TestGoldenRows(t *testing.T) {
	const shared = "../../../shared/folds"
	lists, err := filepath.Glob(shared + "/*.csv")
	if err != nil || len(lists) == 0 {
		t.Skipf("there are no lists of folds in %s, error %v", shared, err)
	}
	for _, path := range lists {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if rows := strings.Count(string(b), "\n") - 1; golden[rows] == "" { // without the header
			t.Errorf("%s: %d samples are not among the golden ones", path, rows)
		}
	}
}

// TestDivide: each row is tested once in each repeat, folds differ by at most one row, and
// repeats are the folds of their own seeds.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(2, 300).Draw(t, "samples")
		k := rapid.IntRange(2, min(rows, 40)).Draw(t, "folds")
		s := Scheme{Way: rapid.SampledFrom([]string{Seeded, ScikitLearn}).Draw(t, "way"), Folds: k,
			Seed: rapid.Uint64Range(0, 1000).Draw(t, "seed"), Repeats: 3}
		for repeat := range s.Repeats {
			got, err := s.Divide(&Rows{Count: rows}, repeat)
			if err != nil {
				t.Fatal(err)
			}
			counts := make([]int, k)
			for _, f := range got.Assigned {
				counts[f]++
			}
			if len(got.Assigned) != rows || got.Folds != k || slices.Min(counts) < rows/k || slices.Max(counts) > (rows+k-1)/k {
				t.Fatalf("folds of %v samples", counts)
			}
			alone := Scheme{Way: s.Way, Folds: k, Seed: s.Seed + uint64(repeat), Repeats: 1}
			same, err := alone.Divide(&Rows{Count: rows}, 0)
			if err != nil || !slices.Equal(same.Assigned, got.Assigned) {
				t.Fatalf("repeat %d differs from its seed, error %v", repeat, err)
			}
		}
	})
}

// TestSeededAsJobs: the list gives the roles that a job's own split gives.
func TestSeededAsJobs(t *testing.T) {
	s := Scheme{Way: Seeded, Folds: 4, Seed: 7, Repeats: 1}
	list, err := s.Divide(&Rows{Count: 30}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for fold := range 4 {
		own, err := dataset.Split{Seed: 7, Folds: 4, Fold: fold, ValidationFraction: .2}.Assign(30, nil)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := dataset.Split{Seed: 7, Folds: 4, Fold: fold, ValidationFraction: .2, Assigned: "x"}.Assign(30,
			list.Assigned)
		if err != nil || !slices.Equal(own, listed) {
			t.Errorf("fold %d: %v, listed %v, error %v", fold, own, listed, err)
		}
	}
}

func TestGroupsAndFiles(t *testing.T) {
	groups := Scheme{Way: Groups}
	got, err := groups.Divide(&Rows{Count: 4, Groups: []uint16{2, 0, 1, 2}}, 0)
	if err != nil || got.Folds != 3 || !slices.Equal(got.Assigned, []uint16{2, 0, 1, 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	file := Scheme{Way: File}
	list := &dataset.SplitList{Assigned: []uint16{1, 2, 3}, Folds: 2, Overlap: true}
	if got, err := file.Divide(&Rows{Count: 3, File: list}, 0); err != nil || got != list {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	ten := &Rows{Count: 10}
	for _, c := range []struct {
		scheme Scheme
		rows   *Rows
		repeat int
		want   string
	}{
		{Scheme{Way: "odd"}, ten, 0, `folds "odd": want seeded, scikit-learn, groups or file`},
		{Scheme{Way: Seeded, Folds: 1, Repeats: 1}, ten, 0,
			"want 2 to 65536 folds, got 1: these samples cannot be divided into these folds"},
		{Scheme{Way: Seeded, Folds: 11, Repeats: 1}, ten, 0,
			"want 2 to 10 folds for 10 samples, so that each fold has a sample; got 11 folds"},
		{Scheme{Way: ScikitLearn, Folds: 11, Repeats: 1}, ten, 0,
			"want 2 to 10 folds for 10 samples, so that each fold has a sample; got 11 folds"},
		{Scheme{Way: Seeded, Folds: 2}, ten, 0, "want at least 1 repeat, got 0: these samples cannot be divided into these " +
			"folds"},
		{Scheme{Way: Seeded, Folds: 2, Repeats: 2}, ten, 2,
			"there is no repeat 2, counted from 0: the number of repeats is 2"},
		{Scheme{Way: Seeded, Folds: 2, Repeats: 2, Seed: math.MaxUint64}, ten, 0, "the last seed exceeds"},
		{Scheme{Way: ScikitLearn, Folds: 2, Repeats: 2, Seed: math.MaxUint32}, ten, 0,
			"the last repeat needs seed 4294967296, but the largest seed of scikit-learn is 4294967295"},
		{Scheme{Way: Groups, Folds: 3}, ten, 0, "folds of the kind groups take no number, seed or repeats: these samples " +
			"cannot be divided into these folds"},
		{Scheme{Way: Groups}, ten, 0, "the dataset has 10 samples, but groups for 0 samples: these samples cannot be " +
			"divided into these folds"},
		{Scheme{Way: Groups}, &Rows{Count: 2, Groups: []uint16{0, 0}}, 0,
			"all samples are in one group, so no samples are left to train on"},
		{Scheme{Way: Groups}, &Rows{Count: 2, Groups: []uint16{0, 2}}, 0,
			"group 1, counted from 0, of 3 groups has no samples: these samples cannot be divided into these folds"},
		{Scheme{Way: File}, ten, 0, "the folds come from a split file, but none is given: these samples cannot be divided " +
			"into these folds"},
		{Scheme{Way: File}, &Rows{Count: 10, File: &dataset.SplitList{Assigned: make([]uint16, 4), Folds: 2}}, 0,
			"the split file lists 4 values, but the dataset of 10 samples needs 10"},
	} {
		if _, err := c.scheme.Divide(c.rows, c.repeat); err == nil || !strings.Contains(err.Error(), c.want) ||
			!errors.Is(err, ErrFolds) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestSeededManyFolds: as many folds as rows take as long as few folds. Each row is in the fold of the job.
func TestSeededManyFolds(t *testing.T) {
	list, err := (&Scheme{Way: Seeded, Folds: 60_000, Seed: 3, Repeats: 1}).Divide(&Rows{Count: 65_000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fold := range []int{0, 7, 59_999} {
		roles, err := dataset.Split{Seed: 3, Folds: 60_000, Fold: fold}.Assign(65_000, nil)
		if err != nil {
			t.Fatal(err)
		}
		for row, r := range roles {
			if (r == dataset.Test) != (int(list.Assigned[row]) == fold) {
				t.Fatalf("row %d is in fold %d", row, list.Assigned[row])
			}
		}
	}
}
