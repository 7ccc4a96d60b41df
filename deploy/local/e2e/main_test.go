package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// root holds what TestMain has built, laid out like the workspace: .bin with the programs, deploy/base with the route file.
var root string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func withPrograms(run func() int) (int, error) {
	workspace, err := findWorkspace()
	if err != nil {
		return 0, err
	}
	if root, err = os.MkdirTemp("", "framerun-e2e-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	if err := makeScratch(); err != nil {
		return 0, err
	}
	if err := build(workspace); err != nil {
		return 0, err
	}
	return run(), nil
}

// findWorkspace walks up to the folder of go.work.
func findWorkspace() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work above the tests: they build all modules and need the whole workspace")
		}
		dir = filepath.Dir(dir)
	}
}

func build(workspace string) error {
	cmd := exec.Command("go", "build", "-o", filepath.Join(root, ".bin")+string(filepath.Separator),
		"./services/intake", "./services/status", "./services/interaction", "./services/query", "./services/runctl", "./deploy/local",
		"./deploy/documentdb")
	cmd.Dir = workspace
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(workspace, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(workspace, "deploy", "base", "routes.yaml"))
	if err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(routes()), filepath.Join(root, "deploy", "local")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(routes(), text, 0o644)
}

// scratch is for what killed programs leave lying, and for PostgreSQL's data. As root, PostgreSQL runs as another user, who has to get in.
func scratch() string { return filepath.Join(root, "scratch") }

func makeScratch() error {
	return errors.Join(os.Chmod(root, 0o755), os.Mkdir(scratch(), 0o777), os.Chmod(scratch(), 0o777)) // whatever the umask
}

func routes() string { return filepath.Join(root, "deploy", "base", "routes.yaml") }
