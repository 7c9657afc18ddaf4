# Internal: the libraries that generated code calls for targets named with OFFLOAD.
#
# cmsis-nn: the target `cmsis-nn`, of the project or of the sources in AOT_MODEL_CMSIS_NN_DIR (which defines one).
# onednn:   DNNL::dnnl of find_package(dnnl).
# A project that has the library under another name links it itself: target_link_libraries(<library> PRIVATE …).

include_guard(GLOBAL)

function(_aot_model_link_backends library)
    foreach (offload IN LISTS ARGN)
        string(REGEX REPLACE ",.*" "" name "${offload}")
        if (name STREQUAL "cmsis-nn")
            if (NOT TARGET cmsis-nn AND AOT_MODEL_CMSIS_NN_DIR)
                add_subdirectory("${AOT_MODEL_CMSIS_NN_DIR}" "${CMAKE_BINARY_DIR}/_aot_model/cmsis-nn" EXCLUDE_FROM_ALL)
            endif ()
            target_link_libraries(${library} PRIVATE $<TARGET_NAME_IF_EXISTS:cmsis-nn>)
        elseif (name STREQUAL "onednn")
            find_package(dnnl CONFIG QUIET)
            target_link_libraries(${library} PUBLIC $<TARGET_NAME_IF_EXISTS:DNNL::dnnl>)
        endif ()
    endforeach ()
endfunction()
