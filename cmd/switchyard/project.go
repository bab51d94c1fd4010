package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/board"
	"switchyard/internal/config"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/projectserver"
	"switchyard/internal/supervise"
)

func projectCommand() *cobra.Command {
	var create bool
	var layout string
	var inGit config.Git
	cmd := &cobra.Command{
		Use:   "project --name N --work DIR",
		Short: "Run a project server: watch a work directory, and serve its events, pipeline and stories",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadProject(cmd.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			if layout != "" && !slices.Contains(board.Layouts(), layout) {
				return usagef("--layout: must be one of %s", strings.Join(board.Layouts(), ", "))
			}
			c.Git = inGit
			log := newLogger(cmd.ErrOrStderr(), "text", "info")
			for _, warning := range c.Warnings {
				log.Warn(warning)
			}
			found, err := locate(c.Work, layout, create, false)
			if err != nil {
				return fmt.Errorf("--work: %w", err)
			}
			c.Work, c.Layout = found[0].Dir, found[0].Layout
			listeners, err := listen(log, c.Listen)
			if err != nil {
				return err
			}
			p, err := openProject(c, log)
			if err != nil {
				return fmt.Errorf("--work: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Switchyard serves %s\n", baseURL(c.Listen, listeners))
			tellService(ready)
			return p.run(cmd.Context(), listeners)
		},
	}
	config.AddProjectFlags(cmd.Flags())
	inGit.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&layout, "layout", "", "read a board of the layout `NAME`, not the first that is found: "+
		strings.Join(board.Layouts(), ", "))
	cmd.Flags().BoolVar(&create, "create", false, "make a DIR that does not exist, with stage directories")
	return cmd
}

// projectServer is a project server that has read its work directory but does not serve yet.
type projectServer struct {
	log     *slog.Logger
	board   *board.Board
	commits *gitlog.Log
	work    *gitlog.Work
	handler http.Handler
}

// openProject reads the work directory of c for the first time. It creates the directory and the default stages if
// there are none.
func openProject(c *config.Project, log *slog.Logger) (*projectServer, error) {
	if err := os.MkdirAll(c.Work, 0o777); err != nil {
		return nil, err
	}
	log = log.With("project", c.Name)
	ring := feed.New(time.Now)
	state, ok := config.Expand("$XDG_STATE_HOME/switchyard/boards", os.Getenv)
	if !ok {
		state = "" // reasons cannot be kept then
	}
	var places *gitlog.Work
	work, err := board.Open(board.Options{
		Dir: c.Work, Layout: c.Layout, State: state, Log: log, Record: ring.Record, AllowWrites: c.AllowWrites,
		CommitMoves: c.CommitMoves, AllowMerges: c.AllowMerges, MergeCheck: c.MergeCheck,
		Refresh: func(ctx context.Context) { places.Refresh(ctx) },
	})
	if err != nil {
		return nil, err
	}
	commits := gitlog.New(gitlog.Options{Dir: c.Work, Board: work, Log: log})
	places = gitlog.NewWork(commits, work, !c.NoWorktrees)
	host, _ := os.Hostname() // without it, sessions find their work tree by its path alone
	h := projectserver.Server{
		Name: c.Name, Host: host, Board: work, Feed: ring, Commits: commits, Work: places, Token: c.Token,
		AllowHosts: c.AllowHosts, Log: log,
	}
	return &projectServer{log, work, commits, places, h.Handler()}, nil
}

// maxFirstRead is how long callers wait at the start until work trees and branches have been read.
const maxFirstRead = 10 * time.Second

func (p *projectServer) run(ctx context.Context, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loops := supervise.New(ctx, p.log)
	loops.Go("board", p.board.Run)
	loops.Go("commits", p.commits.Run)
	loops.Go("work trees", p.work.Run)
	supervise.Await(ctx, p.work.Known(), maxFirstRead) // so that no answer shows stories of work trees where DIR has them
	err := serve(ctx, p.log, listeners, p.handler)
	cancel()
	await(p.log, loops)
	return err
}
