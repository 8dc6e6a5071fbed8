package read

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
)

// parquetFormat is the format of a folder and of a pattern, too.
const parquetFormat = "parquet"

// IsPattern reports whether Open takes a path for a pattern of file names, such as part-*.parquet: it has a *, a ? or
// a [, and no file has this name.
func IsPattern(path string) bool {
	if IsNamedArrays(path) || !strings.ContainsAny(path, "*?[") {
		return false
	}
	_, err := os.Lstat(path)
	return err != nil
}

// filesOf returns the Parquet files of a folder or of a pattern, sorted by name. For another path, it returns the path,
// and the error of os.Stat.
func filesOf(path string) ([]string, error) {
	if IsPattern(path) {
		return matching(path)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, err
	}
	return inFolder(path)
}

// isHidden reports whether other programs hide files of a name, such as _SUCCESS.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// IsParquet reports whether a path names a Parquet file, or several of them.
func IsParquet(path string) bool { return strings.HasSuffix(strings.ToLower(path), "."+parquetFormat) }

// inFolder lists the Parquet files of a folder that are not hidden.
func inFolder(path string) (files []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	folder := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case isHidden(name):
		case e.IsDir():
			folder = cmp.Or(folder, name)
		case IsParquet(name):
			files = append(files, filepath.Join(path, name))
		}
	}
	switch {
	case folder != "" && len(files) > 0:
		return nil, dataset.Errorf(dataset.ErrFormat, "the folder has .parquet files and the folder %q: a dataset is the "+
			".parquet files of one folder; move the others away", folder)
	case folder != "":
		return nil, dataset.Errorf(dataset.ErrFormat, "the folder has no .parquet files, but the folder %q: folders in "+
			"folders are not read; a quoted pattern such as '%s' names the files in them", folder,
			filepath.Join(path, "*", "*.parquet"))
	case len(files) == 0:
		return nil, dataset.Errorf(dataset.ErrFormat, "this is a folder without .parquet files, want a data file or a "+
			"folder of .parquet files")
	}
	slices.Sort(files)
	return files, nil
}

// matching lists the files of a pattern that are not hidden. If the folder of a pattern exists, its name is no pattern.
func matching(pattern string) (files []string, err error) {
	dir, name := filepath.Split(pattern)
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, dataset.Errorf(dataset.ErrFormat, "this is no pattern of file names: a [ or a \\ has no end")
	}
	if entries, err := os.ReadDir(cmp.Or(dir, ".")); err == nil {
		for _, e := range entries {
			if ok, _ := filepath.Match(name, e.Name()); ok {
				files = append(files, dir+e.Name())
			}
		}
	} else if files, err = filepath.Glob(pattern); err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		base := filepath.Base(file)
		return isHidden(base) && !strings.HasPrefix(name, base[:1])
	})
	if len(files) == 0 {
		return nil, dataset.WithKind(errors.New("no file matches this pattern"), fs.ErrNotExist)
	}
	slices.Sort(files)
	for _, file := range files {
		if info, err := os.Stat(file); err != nil {
			return nil, err
		} else if info.IsDir() || !IsParquet(file) {
			return nil, dataset.Errorf(dataset.ErrFormat, "the pattern matches %s, which is not a .parquet file: only "+
				".parquet files can be one dataset together", shortName(file, files))
		}
	}
	return files, nil
}

// shortName returns how messages call one of several files: its name, or its path if the files are in several folders.
func shortName(file string, all []string) string {
	dir := filepath.Dir(file)
	if slices.ContainsFunc(all, func(other string) bool { return filepath.Dir(other) != dir }) {
		return file
	}
	return filepath.Base(file)
}

// NamedArrays is how messages call arrays that a JSON object names.
const NamedArrays = "the arrays"

// IsNamedArrays reports whether Open takes a text for a JSON object with the .npy files of a dataset:
// it begins with {.
func IsNamedArrays(text string) bool { return strings.HasPrefix(text, "{") }
