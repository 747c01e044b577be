package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

var refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_CREATE_MODULE}

var setIDHere = []withMode{{unix.SYS_CHMOD, dataArg1, 0}, {unix.SYS_MKNOD, dataArg1, 0}, {unix.SYS_CREAT, dataArg1, 0}, {unix.SYS_OPEN, dataArg2, dataArg1}}
