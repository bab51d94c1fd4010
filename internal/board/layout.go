package board

import "switchyard/internal/domain"

// layout is how a tool keeps a board in files. It remembers what it has read, so that only changed files are read again.
type layout interface {
	// scan reads the files that changed, all if that is nil, and returns all stages in order. An error means that none of
	// them could be read.
	scan(changed fileSet) ([]*stage, error)
	// touch adds the file at path to those that changed. It returns false if more than that file may have changed.
	touch(changed fileSet, path string) bool
	// read reads a story that the last scan found in a stage. Its error is fs.ErrNotExist when it is not there.
	read(story Story, stage string) (*Details, error)
	// lock waits until no other tool writes the story. It is called without the board's mutex.
	lock(id string) (unlock func(), err error)
	// change makes the change, or says why not, and returns the files that it affects. Its error is fs.ErrNotExist when the
	// story is not there.
	change(story Story, stage string, c Change) (changed fileSet, err error)
	// create adds a story to a stage, "" for the first one, and returns its id.
	create(name, body, stage string) (id string, changed fileSet, err error)
	past() Past
}

// open returns the layout of the board.
func (b *Board) open(o Options) (layout, error) {
	if o.Layout != "" && o.Layout != domain.LayoutStages {
		return nil, domain.Errorf(domain.Invalid, "there is no layout %q", limit(o.Layout))
	}
	if err := makeStages(o.Dir); err != nil {
		return nil, err
	}
	if o.AllowWrites {
		b.report("remove temporary files", sweepTemp(o.Dir))
	}
	return &scanner{dir: b.dir, watch: b.watch}, nil
}
