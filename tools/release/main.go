// Release writes what a release consists of, from programs that were built before:
//
//	release images  an OCI archive per program, for all platforms, and a bill of materials
//	release cli     an archive of exeunt per platform, checksums, a manifest for krew, and the
//	                notes of the release
//
// The programs are expected in a directory per platform, such as linux-amd64. The same programs
// give the same files, byte by byte.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release says what is released, and where it goes.
type release struct {
	// programs is the directory with a directory of programs per platform, out that of the results.
	programs, out string
	platforms     []platform
	// version, revision and date are those of the commit, tag is that of the images.
	version, revision, tag string
	date                   time.Time
	// source is the address of the repository.
	source string
}

// run writes one part of a release.
func run(args []string, log io.Writer) error {
	parts := map[string]func(release, []string, io.Writer) error{"images": writeImages, "cli": writeCLI}
	if len(args) == 0 || parts[args[0]] == nil {
		return errors.New("say what to write: images or cli")
	}
	var r release
	var platforms, date string
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	flags.StringVar(&r.programs, "programs", "bin/release", "directory with a directory of programs per platform")
	flags.StringVar(&r.out, "out", "bin/release", "directory to write into")
	flags.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
	flags.StringVar(&r.version, "version", "", "version of the release")
	flags.StringVar(&r.tag, "tag", "", "tag of the images (default: the version)")
	flags.StringVar(&r.revision, "revision", "", "commit of the release")
	flags.StringVar(&date, "date", "", "time of the commit, such as 2026-01-02T15:04:05Z")
	flags.StringVar(&r.source, "source", "https://github.com/exeunt-io/exeunt", "address of the repository")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if r.version == "" {
		return errors.New("--version is missing: name the version of the release")
	}
	if r.tag == "" {
		r.tag = strings.ReplaceAll(r.version, "+", "-") // a tag has no plus sign
	}
	var err error
	if r.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("--date=%q is no time such as 2026-01-02T15:04:05Z", date)
	}
	r.date = r.date.UTC()
	if r.platforms, err = parsePlatforms(platforms); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	return parts[args[0]](r, flags.Args(), log)
}

// platform is an operating system and an architecture, by the names of the go command.
type platform struct{ os, arch string }

// parsePlatforms reads platforms such as linux/amd64,darwin/arm64.
func parsePlatforms(text string) ([]platform, error) {
	var platforms []platform
	for _, part := range strings.Split(text, ",") {
		system, arch, complete := strings.Cut(part, "/")
		if !complete || system == "" || arch == "" {
			return nil, fmt.Errorf("--platforms: %q is no platform such as linux/amd64", part)
		}
		platforms = append(platforms, platform{system, arch})
	}
	return platforms, nil
}

// String is the name of the directory of programs.
func (p platform) String() string { return p.os + "-" + p.arch }

// executable is the name of a program's file.
func (p platform) executable(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}
