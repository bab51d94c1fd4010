package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bot/matrix"
	"switchyard/internal/botfile"
	"switchyard/internal/domain"
	"switchyard/internal/neterr"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
)

// openDatabase opens the database for reading only. It returns nil without an error if there is none yet.
func (d *doctor) openDatabase() (*sql.DB, error) {
	if d.Database != "" {
		return postgres.OpenReadOnly(d.Database.Reveal())
	}
	db, err := sqlite.OpenReadOnly(d.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return db, err
}

// ask runs a query for one value. It returns false if there is no database or no such row.
func (d *doctor) ask(ctx context.Context, to any, query string) (found bool, err error) {
	db, err := d.openDatabase()
	if db == nil || err != nil {
		return false, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, query).Scan(to)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		if said := errors.Unwrap(err); d.Database != "" && said != nil { // the text around it names the account
			err = errors.New(neterr.Describe(err, checkLimit))
		}
		return false, fmt.Errorf("%s: %w", databaseOf(d.Config), err)
	}
	return true, nil
}

// clock compares this machine's clock with that of a shared database, or else with the newest event.
func (d *doctor) clock(ctx context.Context) (string, error) {
	query := "SELECT coalesce(max(received_at_ms), 0) FROM events"
	if d.Database != "" {
		query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
	}
	var at int64
	asked := time.Now()
	found, err := d.ask(ctx, &at, query)
	if err != nil || !found || at == 0 { // the database's line says what is wrong with it
		return "this machine's: " + asked.UTC().Format(time.RFC3339), nil
	}
	ahead := time.UnixMilli(at).Sub(asked)
	switch {
	case d.Database != "" && ahead.Abs() > wrongClock+time.Since(asked):
		return "", fmt.Errorf("this machine's clock and the database's differ by %s", ahead.Round(time.Second))
	case d.Database == "" && ahead > wrongClock:
		return "", fmt.Errorf("this machine's clock is behind the newest event by %s", ahead.Round(time.Second))
	}
	return "this machine's: " + asked.UTC().Format(time.RFC3339), nil
}

func (d *doctor) database(ctx context.Context) (string, error) {
	if d.Database == "" {
		if err := checkNotEmptied(d.Data, slog.New(slog.DiscardHandler)); err != nil {
			return "", err
		}
		return d.sqlite(ctx)
	}
	var number int
	if _, err := d.ask(ctx, &number, "SELECT current_setting('server_version_num')::int"); err != nil {
		return "", err
	}
	const oldest = 15
	if number/10_000 < oldest {
		return "", fmt.Errorf("%s is PostgreSQL %d; it must be %d or newer", databaseOf(d.Config), number/10_000, oldest)
	}
	return fmt.Sprintf("%s, PostgreSQL %d", databaseOf(d.Config), number/10_000), nil
}

func (d *doctor) sqlite(ctx context.Context) (string, error) {
	path := filepath.Join(d.Data, sqlite.FileName)
	var found, by string
	any, err := d.ask(ctx, &found, "PRAGMA quick_check(1)")
	switch {
	case err != nil:
		return "", err
	case !any:
		return path + " will be made by the first start", nil
	case found != "ok":
		return "", fmt.Errorf("%s: %s", path, found)
	}
	if err := d.askTable(ctx, "state", &by, "SELECT value FROM state WHERE key = '"+writtenByKey+"'"); err != nil {
		return "", err
	}
	if by != "" {
		by = ", last written by " + by
	}
	return path + by, nil
}

// bot checks that the bot's network can be reached and, if that begins no session, that it accepts the token.
func (d *doctor) bot(ctx context.Context) (string, error) {
	c, err := d.botConfig(ctx)
	if err != nil || c.IsDefault() {
		return "not set up", err
	}
	for _, setting := range c.Transport.Network().Settings {
		if strings.TrimSpace(c.Settings[setting.Key].Reveal()) == "" {
			return "", fmt.Errorf("%s is missing", setting.Label)
		}
	}
	options := bot.Options{TeamAPIURL: d.Bot.TeamAPIURL, Log: slog.New(slog.DiscardHandler)}
	if c.Transport == domain.BotMatrix {
		return "the homeserver answers", matrix.Reach(ctx, options, c.Settings)
	}
	return c.Transport.Network().Name + " accepts the token", chatTransports[c.Transport](options, c.Settings).Connect(ctx)
}

// botConfig returns the bot's configuration: gateways that share a database keep it there.
func (d *doctor) botConfig(ctx context.Context) (domain.BotConfig, error) {
	var text string
	if d.Database != "" {
		if err := d.askTable(ctx, "bot_config", &text, "SELECT config FROM bot_config"); err != nil {
			return domain.BotConfig{}, err
		}
	}
	if text != "" {
		return postgres.ReadBotConfig(text)
	}
	return botfile.File{Path: d.BotConfig}.Load()
}

// targets counts the notification targets, and checks whether the last message to each was accepted.
func (d *doctor) targets(ctx context.Context) (string, error) {
	var count int
	if err := d.askTable(ctx, "targets", &count, "SELECT count(*) FROM targets"); err != nil || count == 0 {
		return "not set up", err
	}
	var failing sql.NullString
	err := d.askTable(ctx, "targets", &failing, `SELECT min(name) FROM targets WHERE enabled = 1
		AND (SELECT error FROM deliveries WHERE target = targets.id ORDER BY id DESC LIMIT 1) <> ''`)
	if err == nil && failing.Valid {
		err = fmt.Errorf("the last message to %q was not accepted", failing.String)
	}
	return fmt.Sprintf("%d set up", count), err
}

// askTable is ask about a table that may not exist yet.
func (d *doctor) askTable(ctx context.Context, table string, to any, query string) error {
	exists := "SELECT name FROM sqlite_master WHERE name = '" + table + "'"
	if d.Database != "" {
		exists = "SELECT relname FROM pg_class WHERE relname = '" + table + "'"
	}
	var name string
	found, err := d.ask(ctx, &name, exists)
	if found && err == nil {
		_, err = d.ask(ctx, to, query)
	}
	return err
}
