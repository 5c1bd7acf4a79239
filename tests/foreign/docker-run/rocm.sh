sudo docker run -it --network=host --device=/dev/kfd --device=/dev/dri --group-add video --ipc=private --cap-add=SYS_PTRACE --security-opt seccomp=unconfined rocm/pytorch:latest
