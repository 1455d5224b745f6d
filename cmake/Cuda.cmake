# The CUDA language and the flags every device file is built with.
# CMake 3.25 silently ignores CUDA_STANDARD 20 for nvcc 13, so the standard is passed by hand.
find_program(MILLRACE_NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
set(CMAKE_CUDA_COMPILER ${MILLRACE_NVCC})
set(CMAKE_CUDA_ARCHITECTURES OFF)
enable_language(CUDA)
# What ptxas says of every kernel stays beside its object.
list(PREPEND CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CURRENT_SOURCE_DIR}/tools/ptxas_report)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} knows neither C++20 nor sm_90a: CUDA 12.0 or later is needed")
endif()
find_package(CUDAToolkit REQUIRED)

function(millrace_cuda_target target)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES OFF CUDA_RUNTIME_LIBRARY Static)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
    -std=c++20 -fmad=false -Xcompiler=-Wall,-Wextra,-ffp-contract=off --Werror=all-warnings
    -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=compute_80>)
  target_compile_definitions(${target} PRIVATE MILLRACE_CUDA=1)
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
endfunction()
