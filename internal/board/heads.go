package board

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/git"
)

// headLimit is how long git may take to list a board's files.
const headLimit = 5 * time.Second

// heads are the board's files in the commit that is checked out, as last listed.
type heads struct {
	state string // of HEAD
	files map[string]bool
}

// inHead reports whether HEAD has a story's file; if git cannot say, false.
func (b *Board) inHead(stage, id string) bool {
	if tree, found := git.Find(b.dir); found && b.heads.state != tree.HeadState() {
		b.heads = heads{tree.HeadState(), map[string]bool{}}
		ctx, cancel := context.WithTimeout(context.Background(), headLimit)
		defer cancel()
		err := git.Open(b.dir).Records(ctx, nil, 0, func(name []byte) error {
			b.heads.files[string(name)] = true
			if len(b.heads.files) > maxFiles {
				return errors.New("HEAD has more than 200,000 files")
			}
			return nil
		}, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", ".")
		b.report("see which files git has", err)
	}
	return b.heads.files[stage+"/"+id+".md"]
}
