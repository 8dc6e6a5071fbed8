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

// IsPattern reports whether Open takes a path for a pattern of file names, such as part-*.parquet: it has a *, a ? or
// a [, and no file has this name.
func IsPattern(path string) bool {
	if IsNamedArrays(path) || !strings.ContainsAny(path, "*?[") {
		return false
	}
	_, err := os.Lstat(path)
	return err != nil
}

// FilesOf returns the files that Open reads for a text: the .npy files of a JSON object, the files of a folder or of a
// pattern, or the text, which is a path. It returns none if Open returns an error.
func FilesOf(text string) (files []string) {
	if !IsNamedArrays(text) {
		files, err := filesOf(text)
		if err != nil && !errors.As(err, new(*fs.PathError)) {
			return nil
		}
		return files
	}
	arrays, err := parseNamedArrays(text)
	if err != nil {
		return nil
	}
	for _, a := range arrays {
		files = append(files, a.path)
	}
	return files
}

// Size returns the size of the file that Open reads for a path, or of all files of a folder or of a pattern. An error
// wraps fs.ErrNotExist if there is none.
func Size(path string) (int64, error) {
	n, err := sizeOf(path, CalledOf(path))
	return int64(n), err
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

// severalSize returns the size of the files of a folder or of a pattern.
func severalSize(path string) (total fileSize, err error) {
	files, err := filesOf(path)
	if err != nil {
		return 0, pathError(path, err)
	}
	for _, name := range files {
		n, err := regularSize(name, name, "give a regular file")
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// isHidden reports whether other programs hide files of a name, such as _SUCCESS.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

func isParquet(name string) bool { return strings.HasSuffix(strings.ToLower(name), "."+parquetFormat) }

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
		case isParquet(name):
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
		} else if info.IsDir() || !isParquet(file) {
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
