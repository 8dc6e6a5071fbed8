package dataset

// Build reads src into memory, cut into shards as Import would cut it, and
// returns the same manifest as Import.
func Build(src Source, o ImportOptions) (*Manifest, []*Rows, error) {
	s, err := scanStats(src, &o)
	if err != nil {
		return nil, nil, err
	}
	m := s.manifest()
	builders := make([]*builder, len(m.Shards))
	for i := range builders {
		builders[i] = newBuilder(m, i)
	}
	p := newPartitioner(m)
	err = scanChecked(src, &o, "sort", m.Rows, func(r *Row, c *checker) error {
		s.rounded.add(r)
		row, shard, err := p.assign(r, c)
		if err == nil {
			builders[shard].add(row)
		}
		return err
	})
	if err == nil {
		err = p.checkCounts()
	}
	if err != nil {
		return nil, nil, err
	}
	p.finishGroups(&o)
	s.warnRounded(o.Warn)
	shards := make([]*Rows, len(builders))
	for i, b := range builders {
		rows, names, err := b.finish()
		if err != nil {
			return nil, nil, err
		}
		rows.setNames(names)
		shards[i], builders[i] = rows, nil
		_, m.Shards[i] = encodeShard(rows, names)
		if err := o.report("store", i+1, len(shards)); err != nil {
			return nil, nil, err
		}
	}
	return m, shards, nil
}
