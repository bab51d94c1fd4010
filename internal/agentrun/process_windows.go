package agentrun

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// startHeld starts a command in a job of its own. It is suspended until it begins; if the agent dies before or
// after, the system ends the job, so that no command is left behind.
func startHeld(cmd *exec.Cmd) (group, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	pid := uint32(cmd.Process.Pid)
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err == nil {
		err = errors.Join(windows.AssignProcessToJobObject(handle, process), windows.CloseHandle(process))
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), windows.CloseHandle(handle))
	}
	return job{handle, pid}, nil
}

type job struct {
	handle windows.Handle
	pid    uint32 // of the first process, which is the number of its console group
}

// begin resumes the first thread.
func (j job) begin() error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot) //nolint:errcheck // only read
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != j.pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(err, windows.CloseHandle(thread))
	}
	return err
}

// ask sends Ctrl-Break: there is no SIGTERM here.
func (j job) ask()  { _ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, j.pid) }
func (j job) kill() { _ = windows.TerminateJobObject(j.handle, 1) }

func (j job) run() bool {
	var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		times                        [4]int64
		faults, total, active, ended uint32
	}
	const basicAccounting = 1
	err := windows.QueryInformationJobObject(j.handle, basicAccounting, uintptr(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.active > 0
}

func (j job) close() { _ = windows.CloseHandle(j.handle) }

func hideMemory() error { return nil }

// startOf is not needed: a command does not outlive its agent.
func startOf(int) (string, error) { return "", nil }

// stopLeftover has nothing to do: see startHeld.
func stopLeftover(context.Context, processGroup, string) bool { return false }
