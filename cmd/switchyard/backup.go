package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/files"
	"switchyard/internal/store/sqlite"
)

// backupTime is the time format in the names of backups that --keep counts.
const backupTime = "20060102T150405.000Z"

func backupCommand() *cobra.Command {
	var keep int
	cmd := &cobra.Command{
		ValidArgsFunction: completeFiles,

		Use:   "backup FILE | backup --keep N DIR",
		Short: "Copy the gateway's database to a new file, even while the gateway is running",
		Long: "Copy the gateway's database to a new file, even while the gateway is running. With --keep N the copy is\n" +
			"DIR/switchyard-TIME.db, and of such copies the last N stay. To restore a copy, stop the gateway, replace\n" +
			sqlite.FileName + " in the data directory with the copy, and remove the files beside it that end in -wal and\n" +
			"-shm. To back up a PostgreSQL database, use pg_dump.",
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usagef("missing FILE, or DIR with --keep N")
			case 1:
				return nil
			}
			return usagef("%q is one argument too many", args[1])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.LoadSome(cmd.Flags(), os.Getenv, "gateway.data", "gateway.database")
			if err != nil {
				return err
			}
			keeps := cmd.Flags().Changed("keep")
			if keeps && keep < 1 {
				return usagef("--keep: must be 1 or more")
			}
			if c.Database != "" || strings.Contains(args[0], "://") {
				return errors.New("backup only copies the database in the data directory; to back up PostgreSQL, use pg_dump")
			}
			target, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			dir := target
			if keeps {
				if err := files.MakePrivateDir(dir); err != nil {
					return err
				}
				target = filepath.Join(dir, "switchyard-"+time.Now().UTC().Format(backupTime)+".db")
			}
			if err := sqlite.Backup(cmd.Context(), c.Data, target); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is copied to %s\n", filepath.Join(c.Data, sqlite.FileName), target)
			if keeps {
				err = errors.Join(err, removeOlder(dir, keep))
			}
			return err
		},
	}
	config.AddFlags(cmd.Flags(), "data", "database")
	cmd.Flags().IntVar(&keep, "keep", 0, "write into a directory, and keep the last `N` copies there")
	return cmd
}

// removeOlder removes all but the newest copies, as many as --keep says, from dir, and no other file.
func removeOlder(dir string, keep int) error {
	entries, err := os.ReadDir(dir) // by name, so the oldest come first
	if err != nil {
		return err
	}
	ours := regexp.MustCompile(`^switchyard-\d{8}T\d{6}\.\d{3}Z\.db$`)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !ours.MatchString(e.Name()) || !e.Type().IsRegular()
	})
	for _, entry := range entries[:max(0, len(entries)-keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
	}
	return err
}
