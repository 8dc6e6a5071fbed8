package read

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// BenchmarkImport cuts files of 100 features and 10 labels into shards; the rate is that of
// the file.
func BenchmarkImport(b *testing.B) {
	m := newTestMatrix(60000, 100, 8, 0)
	dir := b.TempDir()
	x := NpyBytes("<f4", false, fmt.Sprintf("(%d, %d)", m.rows, m.features), m.x)
	d := NpyBytes("<f4", false, fmt.Sprintf("(%d, %d)", m.rows, m.labels), m.d)
	csv, libsvm := m.text()
	for name, content := range map[string][]byte{"features.npy": x, "labels.npy": d, "a.csv": csv, "a.libsvm": libsvm} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, size := range map[string]int{"features.npy": len(x) + len(d), "a.csv": len(csv), "a.libsvm": len(libsvm)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				src, err := Open(filepath.Join(dir, name), OpenOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := importer.Import(src, b.TempDir(), importer.Options{Warn: func(errtext.Text) {}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
