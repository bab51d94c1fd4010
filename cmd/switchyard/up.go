package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/board"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

func upCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		ValidArgsFunction: completeDirs,

		Use:   "up [DIR…] [--agent LABEL [-- CMD ARG…]]",
		Short: "Run everything on this machine: a gateway, and a project server for each work directory",
		Long: "Run everything on this machine in one process: a gateway, and a project server for each work directory\n" +
			"DIR, registered under the directory's name, or the repository's for …/.huskies/work and …/work. DIR may\n" +
			"also be the repository. In a DIR that is empty or does not exist, stage directories are created. If no\n" +
			"DIR is given and no project is registered, a sample board is served. With --agent, a build agent runs as\n" +
			"well, and runs CMD while it is assigned to a project. If SWITCHYARD_PROJECT_TOKEN is set, the project\n" +
			"servers require that token, and the gateway uses it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(cmd.Flags(), os.Getenv)
			if err != nil {
				return asUsage(err)
			}
			dirs, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				dirs, command = args[:dash], args[dash:]
			}
			switch err := domain.CheckAgentLabel(agent); {
			case !cmd.Flags().Changed("agent") && len(command) > 0:
				return usagef("CMD requires --agent LABEL, the agent that runs it")
			case cmd.Flags().Changed("agent") && err != nil:
				return usagef("--agent: %s", domain.MessageOf(err))
			}
			boards, err := boardsOf(dirs)
			if err != nil {
				return err
			}
			token, err := config.ProjectToken(os.Getenv)
			if err != nil {
				return err
			}
			log := newStartLog(cmd.ErrOrStderr(), c)
			defer log.ended()
			g, err := openGateway(cmd.Context(), c, log)
			if err != nil {
				return supervise.UnlessEnded(cmd.Context(), err)
			}
			g.prepare = func(ctx context.Context, out io.Writer) error { return g.addBoards(ctx, boards, token, out) }
			if agent != "" {
				err = g.runWithAgent(cmd.Context(), cmd.OutOrStdout(), agent, command)
			} else {
				err = g.run(cmd.Context(), cmd.OutOrStdout())
			}
			return errors.Join(err, g.close())
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&agent, "agent", "", "also run a build agent named `LABEL`")
	return cmd
}

// runWithAgent runs the gateway together with a build agent that joins it automatically. The agent ends first, so that
// it can tell the gateway that it stops.
func (g *gateway) runWithAgent(ctx context.Context, out io.Writer, label string, command []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	asked := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { asked <- time.Now() })
	options := agentrun.Options{
		Gateway: baseURL(g.config.Listen, g.listeners), Label: label, Version: version(),
		StateFile: filepath.Join(g.config.Data, agentStateName(label)),
		Token: func(ctx context.Context) (domain.Secret, error) {
			token, _, err := g.service.Agents.CreateJoinToken(ctx, "")
			return token, err
		},
		Rejoin:  true,
		Command: command, Environment: os.Environ(), Output: out, Log: g.log,
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		select {
		case <-g.begun:
		case <-ctx.Done():
		}
		supervise.Run(ctx, g.log, "agent", func(ctx context.Context) error {
			if err := agentrun.Run(ctx, options); err != nil { // not started again: somebody may have removed it in the console
				g.log.Error("the agent ended", "agent", label, "error", err)
			}
			return nil
		})
		stop(stoppedAt{<-asked})
	})
	err := g.run(serving, out)
	cancel()
	ended.Wait()
	return err
}

// addBoards starts a project server with the given token for each board and registers it; the first becomes the active
// project if there is none. The sample board is added if it is registered, or if there are neither boards nor
// registered projects. The addresses and directories are printed to out.
func (g *gateway) addBoards(ctx context.Context, boards []workBoard, token domain.Secret, out io.Writer) error {
	registry := g.service.Projects.Registry()
	_, registered := registry.Find(sampleName)
	taken := slices.ContainsFunc(boards, func(b workBoard) bool { return b.name == sampleName })
	if registered && !taken || len(boards) == 0 && len(registry.Projects) == 0 {
		dir := filepath.Join(g.config.Data, sampleName)
		fresh, err := unpackSample(dir)
		if err != nil {
			return err
		}
		g.handler.Sample = sampleSteps(dir)
		if fresh {
			watched := make(chan struct{})
			g.handler.Watched = sync.OnceFunc(func() { close(watched) })
			g.loops = append(g.loops, loop{sampleName, func(ctx context.Context) error { return playSample(ctx, dir, watched) }})
		}
		boards = append(boards, workBoard{sampleName, dir})
		fmt.Fprintf(out, "The sample board is %s: move a story to another stage and watch\n", dir)
	}
	for _, b := range boards {
		address, err := g.addBoard(ctx, b, token)
		if err != nil {
			return fmt.Errorf("project %s: %w", b.name, err)
		}
		fmt.Fprintf(out, "Project %s is served at %s from %s\n", b.name, address, b.dir)
	}
	if len(boards) > 0 && g.service.Projects.Registry().Active == "" {
		return g.service.Projects.Switch(ctx, boards[0].name)
	}
	return nil
}

func (g *gateway) addBoard(ctx context.Context, b workBoard, token domain.Secret) (address string, err error) {
	server, err := openProject(&config.Project{Name: b.name, Work: b.dir, Token: token, AllowWrites: true}, g.log)
	if err != nil {
		return "", err
	}
	const anyPort = "127.0.0.1:0"
	listeners, err := listen(g.log, anyPort)
	if err != nil {
		return "", err
	}
	g.addCloser(func() error { closeAll(listeners); return nil })
	address = baseURL(anyPort, listeners)
	if _, err := g.service.Projects.Ensure(ctx, b.name, address, &token); err != nil {
		return "", err
	}
	g.loops = append(g.loops, loop{
		"project server of " + b.name,
		func(ctx context.Context) error { return server.run(ctx, listeners) },
	})
	return address, nil
}

// workBoard is a work directory that is served as a project.
type workBoard struct{ name, dir string }

// boardsOf finds the work directories and their projects' names. It returns a usage error when two have the same name
// or a name is not valid for a project.
func boardsOf(dirs []string) ([]workBoard, error) {
	var boards []workBoard
	taken := map[string]string{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if dir, err = board.Locate(dir); err != nil {
			return nil, err
		}
		name := strings.TrimSpace(boardName(dir))
		if err := domain.CheckProjectName(name); err != nil {
			return nil, usagef("%s: as a project's %s", dir, domain.MessageOf(err))
		}
		if other, ok := taken[name]; ok {
			return nil, usagef("%s and %s would both be the project %q", other, dir, name)
		}
		taken[name] = dir
		boards = append(boards, workBoard{name, dir})
	}
	return boards, nil
}

// boardName returns the name of the directory, or for …/work and …/.huskies/work that of the repository above it.
func boardName(dir string) string {
	above := filepath.Dir(dir)
	if filepath.Base(dir) != "work" {
		return filepath.Base(dir)
	}
	if filepath.Base(above) == ".huskies" {
		above = filepath.Dir(above)
	}
	if above == filepath.Dir(above) { // the root has no name
		return filepath.Base(dir)
	}
	return filepath.Base(above)
}
