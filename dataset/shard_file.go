package dataset

import "fmt"

// OpenShardFile maps an encoded shard into memory. The rows are valid until
// close is called, and only while nobody shortens the file: a cache replaces
// files, it never rewrites them. An error names the file.
func OpenShardFile(path string) (r *Rows, close func() error, err error) {
	b, release, err := mapFile(path)
	if err != nil {
		return nil, nil, err
	}
	r, _, err = DecodeShard(b)
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, release, nil
}
